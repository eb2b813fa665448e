"""What villacampa2017 shows, computed again."""
