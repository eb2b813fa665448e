"""What bui2017 shows, computed again."""
