"""Agents: what a runtime promises, how their answers are read, and what they may touch.

Importing this package is cheap: model libraries are loaded only when a run starts.
"""
