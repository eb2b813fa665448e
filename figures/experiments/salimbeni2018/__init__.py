"""What salimbeni2018 shows, computed again."""
