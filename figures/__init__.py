"""All that is drawn in the book: one style, the sliders, the studies behind the figures and their results."""
