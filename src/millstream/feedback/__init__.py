"""Demand feedback (paper 003): a consumer tells its producers which partial results nobody needs now."""
