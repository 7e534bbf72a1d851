"""The numbers of a run for Prometheus. Needs ``prometheus-client``, and imports it only when it is used."""

from stagewire.metrics.exposition import register_metrics

__all__ = ["register_metrics"]
