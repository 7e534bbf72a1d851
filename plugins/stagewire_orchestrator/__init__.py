"""stagewire_orchestrator."""
