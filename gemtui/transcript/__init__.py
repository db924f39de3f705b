"""What a conversation is: the model that stored sessions and live runs share."""
