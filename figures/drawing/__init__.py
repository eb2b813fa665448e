"""Style, sliders and whatever else all pictures share."""
