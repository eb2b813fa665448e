"""Style, sliders and what else all pictures share."""
