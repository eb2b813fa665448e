"""Everything that the book draws: one style, the sliders, the studies behind its figures and their committed results."""
