"""What csato2002 says, measured."""
