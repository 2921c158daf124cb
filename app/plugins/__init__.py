"""What a review is assembled from: the plugin port, the assembler, and the built-in plugins."""
