"""Loopback doubles of the outside world: a GitHub and a model server.

Part of the product: the demo, the tests, the benchmarks and operators who try a policy use them.
Imports nothing of the rest of `app`; what it exchanges with the product is HTTP and git alone.
"""
