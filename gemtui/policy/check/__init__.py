"""What is wrong, or hardly meant, in policy files."""
