"""What the rules are and what is to be done for them: frozen values that every later step reads."""
