"""The series vLLM exports: names, types, labels and the releases that have them.

Read off the metrics pages of real servers (CPU builds).  Order matters: pages list the series like this.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .releases import RELEASES, Release

FIRST_V1, NEWEST = RELEASES[1], RELEASES[-1]

LATENCY = (0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680)
FIRST_TOKEN = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80,
               160, 640, 2560)
NEXT_TOKEN = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
TOKENS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)
STEP_TOKENS = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
CHOICES = (1, 2, 5, 10, 20)
PREEMPTIONS = (1, 2, 3, 4, 5, 10, 20)
HTTP_FINE = (0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 7.5, 10, 30, 60)
HTTP_COARSE = (0.1, 0.5, 1)

OLD_REASONS = ("stop", "length", "abort")
REASONS = (*OLD_REASONS, "error", "repetition")
SOURCES = ("local_compute", "local_cache_hit", "external_kv_transfer")
TIERS = ("device", "host", "p2p", "disk", "external_unspecified")


class Series(NamedTuple):
    """One family of series.  Counters are named here as they are exported, with `_total`."""

    name: str
    kind: str  # counter, gauge or histogram
    text: str  # the line of # HELP
    label: str = ""  # one label beside engine and model_name
    values: tuple = ("",)  # its values, exported from the start
    buckets: tuple = ()
    since: str = FIRST_V1
    until: str = NEWEST
    per_engine: bool = True

    def is_in(self, release: Release) -> bool:
        """Whether a V1 release exports it."""
        return release.since(self.since) and RELEASES.index(self.until) >= release.rank


def _counter(name: str, text: str, **more: Any) -> Series:
    return Series(name, "counter", text, **more)


def _gauge(name: str, text: str, **more: Any) -> Series:
    return Series(name, "gauge", text, **more)


def _histogram(name: str, text: str, buckets: tuple, **more: Any) -> Series:
    return Series(name, "histogram", text, buckets=buckets, **more)


FLOPS = "(for Model Flops Utilization calculations)."
EXTERNAL = "from KV connector cross-instance cache sharing, in terms of number of"

V1_SERIES = (
    _counter("estimated_flops_per_gpu_total", f"Estimated number of floating point operations per GPU {FLOPS}",
             since="0.25.1"),
    _counter("estimated_read_bytes_per_gpu_total", f"Estimated number of bytes read from memory per GPU {FLOPS}",
             since="0.25.1"),
    _counter("estimated_write_bytes_per_gpu_total", f"Estimated number of bytes written to memory per GPU {FLOPS}",
             since="0.25.1"),
    _gauge("num_requests_running", "Number of requests in model execution batches."),
    _gauge("num_requests_waiting", "Number of requests waiting to be processed."),
    _gauge("num_requests_waiting_by_reason", "Number of waiting requests by reason.",
           label="reason", values=("capacity", "deferred"), since="0.25.1"),
    _gauge("engine_sleep_state", "Engine sleep state; awake = 0 means engine is sleeping; awake = 1 means engine is "
           "awake; weights_offloaded = 1 means sleep level 1; discard_all = 1 means sleep level 2.",
           label="sleep_state", values=("awake", "weights_offloaded", "discard_all"), since="0.12.0"),
    _gauge("gpu_cache_usage_perc", "GPU KV-cache usage. 1 means 100 percent usage.DEPRECATED: Use "
           "vllm:kv_cache_usage_perc instead.", until="0.10.2"),
    _counter("gpu_prefix_cache_queries_total", "GPU prefix cache queries, in terms of number of queriedtokens. "
             "DEPRECATED: Use vllm:prefix_cache_queries instead.", until="0.10.2"),
    _counter("gpu_prefix_cache_hits_total", "GPU prefix cache hits, in terms of number of cached tokens. "
             "DEPRECATED: Use vllm:prefix_cache_hits instead.", until="0.10.2"),
    _gauge("kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage."),
    _counter("prefix_cache_queries_total", "Prefix cache queries, in terms of number of queried tokens."),
    _counter("prefix_cache_hits_total", "Prefix cache hits, in terms of number of cached tokens."),
    _counter("external_prefix_cache_queries_total", f"External prefix cache queries {EXTERNAL} queried tokens.",
             since="0.12.0"),
    _counter("external_prefix_cache_hits_total", f"External prefix cache hits {EXTERNAL} cached tokens.",
             since="0.12.0"),
    _counter("mm_cache_queries_total", "Multi-modal cache queries, in terms of number of queried items.",
             since="0.12.0"),
    _counter("mm_cache_hits_total", "Multi-modal cache hits, in terms of number of cached items.", since="0.12.0"),
    _counter("num_preemptions_total", "Cumulative number of preemption from the engine."),
    _counter("prompt_tokens_total", "Number of prefill tokens processed."),
    _counter("prompt_tokens_by_source_total", "Number of prompt tokens by source.",
             label="source", values=SOURCES, since="0.25.1"),
    _counter("prompt_tokens_cached_total", "Number of cached prompt tokens (local + external).", since="0.25.1"),
    _counter("prompt_tokens_cached_by_source_total", "Prefix-cache hit tokens by the cache tier that supplied them.",
             label="source", values=TIERS, since="0.32.0"),
    _counter("generation_tokens_total", "Number of generation tokens processed."),
    _counter("request_success_total", "Count of successfully processed requests.",
             label="finished_reason", values=OLD_REASONS, until="0.12.0"),
    _counter("request_success_total", "Count of successfully processed requests.",
             label="finished_reason", values=REASONS, since="0.25.1"),
    _counter("admission_rejections_total", "Number of admission attempts rejected by a queue limit, by reason.",
             label="reason", values=("max_num_queued_reqs", "max_num_queued_tokens"), since="0.32.0",
             per_engine=False),
    _histogram("request_prompt_tokens", "Number of prefill tokens processed.", TOKENS),
    _histogram("request_generation_tokens", "Number of generation tokens processed.", TOKENS),
    _histogram("iteration_tokens_total", "Histogram of number of tokens per engine_step.", STEP_TOKENS),
    _histogram("request_max_num_generation_tokens", "Histogram of maximum number of requested generation tokens.",
               TOKENS),
    _histogram("request_params_n", "Histogram of the n request parameter.", CHOICES),
    _histogram("request_params_max_tokens", "Histogram of the max_tokens request parameter.", TOKENS),
    _histogram("time_to_first_token_seconds", "Histogram of time to first token in seconds.", FIRST_TOKEN),
    _histogram("time_per_output_token_seconds", "Histogram of time per output token in seconds.DEPRECATED: Use "
               "vllm:inter_token_latency_seconds instead.", NEXT_TOKEN, until="0.10.2"),
    _histogram("inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", NEXT_TOKEN),
    _histogram("request_time_per_output_token_seconds", "Histogram of time_per_output_token_seconds per request.",
               NEXT_TOKEN, since="0.12.0"),
    _histogram("e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.", LATENCY),
    _histogram("request_queue_time_seconds", "Histogram of time spent in WAITING phase for request.", LATENCY),
    _histogram("request_inference_time_seconds", "Histogram of time spent in RUNNING phase for request.", LATENCY),
    _histogram("request_prefill_time_seconds", "Histogram of time spent in PREFILL phase for request.", LATENCY),
    _histogram("request_decode_time_seconds", "Histogram of time spent in DECODE phase for request.", LATENCY),
    _histogram("request_num_preemptions", "Histogram of the number of times a request was preempted.", PREEMPTIONS,
               since="0.32.0"),
    _histogram("request_prefill_kv_computed_tokens", "Histogram of new KV tokens computed during prefill (excluding "
               "cached tokens).", TOKENS, since="0.25.1"),
)

# V0 lists its series in another order, and request_success_total only for the reasons that have been seen.
V0_SERIES = (
    _gauge("num_requests_running", "Number of requests currently running on GPU."),
    _gauge("num_requests_waiting", "Number of requests waiting to be processed."),
    _gauge("gpu_cache_usage_perc", "GPU KV-cache usage. 1 means 100 percent usage."),
    _counter("num_preemptions_total", "Cumulative number of preemption from the engine."),
    _counter("prompt_tokens_total", "Number of prefill tokens processed."),
    _counter("generation_tokens_total", "Number of generation tokens processed."),
    _counter("request_success_total", "Count of successfully processed requests.",
             label="finished_reason", values=OLD_REASONS),
    _histogram("iteration_tokens_total", "Histogram of number of tokens per engine_step.", STEP_TOKENS),
    _histogram("time_to_first_token_seconds", "Histogram of time to first token in seconds.", FIRST_TOKEN),
    _histogram("time_per_output_token_seconds", "Histogram of time per output token in seconds.", NEXT_TOKEN),
    _histogram("e2e_request_latency_seconds", "Histogram of end to end request latency in seconds.", LATENCY),
    _histogram("request_queue_time_seconds", "Histogram of time spent in WAITING phase for request.", LATENCY),
    _histogram("request_inference_time_seconds", "Histogram of time spent in RUNNING phase for request.", LATENCY),
    _histogram("request_prefill_time_seconds", "Histogram of time spent in PREFILL phase for request.", LATENCY),
    _histogram("request_decode_time_seconds", "Histogram of time spent in DECODE phase for request.", LATENCY),
    _histogram("request_prompt_tokens", "Number of prefill tokens processed.", TOKENS),
    _histogram("request_generation_tokens", "Number of generation tokens processed.", TOKENS),
    _histogram("request_params_n", "Histogram of the n request parameter.", CHOICES),
    _histogram("request_max_num_generation_tokens", "Histogram of maximum number of requested generation tokens.",
               TOKENS),
    _histogram("request_params_max_tokens", "Histogram of the max_tokens request parameter.", TOKENS),
)

# The labels of vllm:cache_config_info.
CACHE_CONFIG = {
    "0.8.5-v0": """
        block_size={block} cache_dtype=auto calculate_kv_scales=False cpu_kvcache_space_bytes=2147483648
        cpu_offload_gb=0 enable_prefix_caching=None gpu_memory_utilization=0.9 is_attention_free=False
        num_cpu_blocks=0 num_gpu_blocks={blocks} num_gpu_blocks_override=None
        prefix_caching_hash_algo=builtin sliding_window=None swap_space=4 swap_space_bytes=4294967296
    """,
    "0.10.2": """
        block_size={block} cache_dtype=auto calculate_kv_scales=False cpu_kvcache_space_bytes=2147483648
        cpu_offload_gb=0.0 enable_prefix_caching=True gpu_memory_utilization=0.9 is_attention_free=False
        kv_cache_memory_bytes=None kv_sharing_fast_prefill=False mamba_cache_dtype=auto
        mamba_page_size_padded=None mamba_ssm_cache_dtype=auto num_cpu_blocks=None num_gpu_blocks={blocks}
        num_gpu_blocks_override=None prefix_caching_hash_algo=sha256 sliding_window=None swap_space=4.0
        swap_space_bytes=4294967296.0
    """,
    "0.12.0": """
        block_size={block} cache_dtype=auto calculate_kv_scales=False cpu_kvcache_space_bytes=2147483648
        cpu_offload_gb=0.0 enable_prefix_caching=True gpu_memory_utilization=0.9 is_attention_free=False
        kv_cache_memory_bytes=None kv_offloading_backend=None kv_offloading_size=None
        kv_sharing_fast_prefill=False mamba_block_size=None mamba_cache_dtype=auto
        mamba_page_size_padded=None mamba_ssm_cache_dtype=auto num_cpu_blocks=None num_gpu_blocks={blocks}
        num_gpu_blocks_override=None prefix_caching_hash_algo=sha256 sliding_window=None swap_space=4.0
    """,
    "0.25.1": """
        _block_size_resolved=True block_size={block} cache_dtype=auto calculate_kv_scales=False
        enable_prefix_caching=True gpu_memory_utilization=0.92 hash_block_size=None is_attention_free=False
        kv_cache_dtype_skip_layers=[] kv_cache_max_concurrency=2.6640625 kv_cache_memory_bytes=2147483648
        kv_cache_size_tokens={tokens} kv_offloading_backend=native kv_offloading_size=None
        kv_sharing_fast_prefill=False mamba_block_size=None mamba_cache_dtype=auto mamba_cache_mode=none
        mamba_page_size_padded=None mamba_ssm_cache_dtype=auto num_cpu_blocks=None num_gpu_blocks={blocks}
        num_gpu_blocks_override=None prefix_caching_hash_algo=sha256 skip_page_size_padded=None
        sliding_window=None user_specified_block_size=False user_specified_mamba_block_size=False
    """,
    "0.32.0": """
        _block_size_resolved=True block_size={block} cache_dtype=auto cache_hit_alignment_tokens=None
        effective_attention_block_size={block} enable_mamba_shared_prefix_checkpoint=False
        enable_prefix_caching=True gpu_memory_utilization=0.92 hash_block_size=None is_attention_free=False
        kv_cache_dtype_skip_layers=[] kv_cache_layout=None kv_cache_max_concurrency=2.6640625
        kv_cache_memory_bytes=2147483648 kv_cache_size_tokens={tokens} kv_offloading_backend=native
        kv_offloading_size=None kv_sharing_fast_prefill=False mamba_block_size=None mamba_cache_dtype=auto
        mamba_cache_mode=none mamba_page_size_padded=None mamba_ssm_cache_dtype=float32 num_cpu_blocks=None
        num_gpu_blocks={blocks} num_gpu_blocks_override=None prefix_cache_retention_interval=0
        prefix_caching_hash_algo=sha256 prefix_match_unit=None replayssm_buffer_len=16
        skip_page_size_padded=None sliding_window=None swa_bounded_replay=True use_kda_recoverssm=False
        use_replayssm=False user_specified_block_size=False
    """,
}


def series_of(release: Release) -> tuple[Series, ...]:
    """All vLLM series of one release, in the order of its page."""
    if release.is_v0:
        return V0_SERIES
    return tuple(series for series in V1_SERIES if series.is_in(release))


def cache_config(release: Release, block_size: int, blocks: int) -> dict[str, str]:
    """The labels of vllm:cache_config_info (without `engine`)."""
    text = CACHE_CONFIG[release.name].format(block=block_size, blocks=blocks, tokens=block_size * blocks)
    return dict(pair.split("=") for pair in text.split())
