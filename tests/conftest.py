"""What every test shares: hypothesis draws the same examples each time."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "kesler",
    derandomize=True,
    deadline=None,  # the first call of a kernel compiles it
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("kesler")
