"""The runtimes: ways of running an agent session, all behind `app.agents.port`."""
