"""The plugins that come with Mergeward."""
