"""One module for each package that is measured; a module imports its package alone, so that environments can be apart."""
