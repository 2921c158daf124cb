"""GitHub behind the Forge port. The only package that imports githubkit."""
