"""Rules as the panes show and edit them, and the policy that is being edited."""
