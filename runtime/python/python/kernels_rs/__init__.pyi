"""GPU kernels in Rust, from Python: from a string, and as a library."""

from typing import Any, Dict, List, Optional, Protocol, Sequence, Tuple, TypeVar, Union, final

__version__: str

class SupportsDLPack(Protocol):
    """An array of PyTorch, CuPy, JAX, NumPy or this package."""

    @property
    def shape(self) -> Any: ...
    def __dlpack__(self) -> Any: ...
    def __dlpack_device__(self) -> Tuple[int, int]: ...

A = TypeVar("A", bound=SupportsDLPack)
Device = Any
DType = Any
StreamLike = Any

class Error(Exception):
    """Base class of the errors of this package."""

class CompileError(Error):
    """Mistakes in a kernel."""

    errors: List[Dict[str, Any]]

class LaunchError(Error):
    """Arguments that do not meet the kernel's contract; nothing has run."""

class Violation(Error):
    """A launch that violated a check, such as a race."""

    findings: List[Dict[str, Any]]
    check: str
    file: str
    line: int
    column: int

class DeviceError(Error):
    """An error of a device or its driver."""

class Unsupported(Error):
    """A call with `strict=True` that no kernel supports."""

@final
class Array:
    """A row-major array in memory of this package, on the CPU or a GPU."""

    @property
    def shape(self) -> Tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def ptr(self) -> int: ...
    @property
    def __array_interface__(self) -> Dict[str, Any]: ...
    @property
    def __cuda_array_interface__(self) -> Dict[str, Any]: ...
    def reshape(self, *shape: Union[int, Sequence[int]]) -> Array: ...
    def item(self) -> Any: ...
    def __float__(self) -> float: ...
    def __int__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def tobytes(self) -> bytes: ...
    def __len__(self) -> int: ...
    def __array__(self, dtype: Any = ..., copy: Optional[bool] = ...) -> Any: ...
    def __dlpack_device__(self) -> Tuple[int, int]: ...
    def __dlpack__(
        self,
        *,
        stream: Any = ...,
        max_version: Optional[Tuple[int, int]] = ...,
        dl_device: Optional[Tuple[int, int]] = ...,
        copy: Optional[bool] = ...,
    ) -> Any: ...

@final
class Stream:
    """A queue of calls. A call with a stream returns once submitted; wait() completes it."""

    def __new__(cls, device: Device = ...) -> Stream: ...
    @property
    def device(self) -> str: ...
    @property
    def handle(self) -> Optional[int]: ...
    def wait(self) -> None: ...
    def __enter__(self) -> Stream: ...
    def __exit__(self, *error: Any) -> None: ...

class Page:
    """The page of an instance: its Rust, IR, PTX and machine code side by side, with costs."""

    html: str
    def __init__(self, document: str) -> None: ...
    def save(self, path: str) -> None: ...
    def _repr_html_(self) -> str: ...

@final
class Kernel:
    """A kernel that was compiled from a string. Calling it launches it."""

    @property
    def name(self) -> str: ...
    @property
    def __name__(self) -> str: ...
    def __copy__(self) -> Kernel: ...
    def __deepcopy__(self, memo: Any) -> Kernel: ...
    @property
    def parameters(self) -> List[str]: ...
    @property
    def generics(self) -> List[str]: ...
    @property
    def instances(self) -> List[str]: ...
    @property
    def ptx(self) -> str: ...
    @property
    def ir(self) -> str: ...
    @property
    def optimized_ir(self) -> str: ...
    def instance(self, label: Optional[str] = ..., **generics: Any) -> Kernel: ...
    def report(self) -> str: ...
    def page(self) -> str: ...
    def inspect(self) -> Page: ...
    def __call__(
        self,
        *arguments: Any,
        block: Optional[int] = ...,
        stream: StreamLike = ...,
        unchecked: bool = ...,
        **named: Any,
    ) -> None: ...

class QuantizedLinear:
    """Quantized weights of a linear layer."""

    weight: Any
    def __init__(self, weight: Any, format: str = ...) -> None: ...
    @classmethod
    def from_blocks(cls, blocks: Any, format: str) -> QuantizedLinear: ...
    @property
    def shape(self) -> Tuple[int, int]: ...
    @property
    def format(self) -> str: ...
    def __call__(self, input: A, bias: None = ..., *, out: Optional[A] = ..., stream: StreamLike = ...) -> A: ...
    def prepare(self) -> QuantizedLinear: ...

class BlockMask:
    """The blocks of keys that each block of queries sees, for attention(..., blocks=mask)."""

    seen: List[List[List[bool]]]
    queries: int
    keys: int
    block: int
    def __init__(self, seen: Any, queries: int, keys: int, *, block: int = ...) -> None: ...
    @property
    def density(self) -> float: ...

def inspect(kernel: Kernel) -> Page: ...
def compile(source: str, name: Optional[str] = ..., *, file: str = ..., target: Optional[str] = ...) -> Kernel: ...
def stats(reset: bool = ...) -> Dict[str, Dict[str, Any]]: ...

class Timings:
    """The times of the operators' kernels within a `with` statement, in seconds by function."""

    def __enter__(self) -> "Timings": ...
    def __exit__(self, *_: Any) -> None: ...
    def read(self) -> Dict[str, Dict[str, float]]: ...

def timings() -> Timings: ...
def devices() -> List[str]: ...
def set_instruction_limit(count: Optional[int]) -> None: ...
def zeros(shape: Union[int, Sequence[int]], dtype: DType = ..., device: Device = ...) -> Array: ...
def array(source: Any, device: Device = ...) -> Array: ...
def asarray(source: Any) -> Array: ...
def describe(array: Any) -> Dict[str, Any]: ...
def numpy(array: Array) -> Any: ...
def softmax(
    input: A,
    dim: int = ...,
    dtype: DType = ...,
    *,
    strict: bool = ...,
    scale: float = ...,
    causal: int = ...,
    out: Optional[A] = ...,
    stream: StreamLike = ...,
) -> A: ...
def log_softmax(
    input: A,
    dim: int = ...,
    dtype: DType = ...,
    *,
    strict: bool = ...,
    scale: float = ...,
    causal: int = ...,
    out: Optional[A] = ...,
    stream: StreamLike = ...,
) -> A: ...
def rms_norm(
    input: A,
    normalized_shape: Union[int, Sequence[int]],
    weight: Optional[A] = ...,
    eps: Optional[float] = ...,
    *,
    strict: bool = ...,
    out: Optional[A] = ...,
    stream: StreamLike = ...,
) -> A: ...
def layer_norm(
    input: A,
    normalized_shape: Union[int, Sequence[int]],
    weight: Optional[A] = ...,
    bias: Optional[A] = ...,
    eps: float = ...,
    *,
    strict: bool = ...,
    out: Optional[A] = ...,
    stream: StreamLike = ...,
) -> A: ...
def cross_entropy(
    input: A,
    target: Any,
    *,
    strict: bool = ...,
    ignore_index: int = ...,
    reduction: str = ...,
    label_smoothing: float = ...,
    stream: StreamLike = ...,
) -> A: ...
def matmul(input: A, other: A, *, strict: bool = ..., out: Optional[A] = ..., stream: StreamLike = ...) -> A: ...
def linear(
    input: A,
    weight: Union[A, QuantizedLinear],
    bias: Optional[A] = ...,
    *,
    activation: Optional[str] = ...,
    residual: Optional[A] = ...,
    out: Optional[A] = ...,
    stream: StreamLike = ...,
    strict: bool = ...,
) -> A: ...
def cache_append(
    query: A,
    key: A,
    value: A,
    key_cache: A,
    value_cache: A,
    lengths: Any,
    *,
    base: float = ...,
    size: Optional[int] = ...,
    frequencies: Optional[Sequence[float]] = ...,
    interleaved: bool = ...,
    pages: Any = ...,
    scales: Optional[Sequence[Any]] = ...,
    out: Optional[A] = ...,
    stream: StreamLike = ...,
    strict: bool = ...,
) -> A: ...
def attention_cached(
    query: A,
    key_cache: A,
    value_cache: A,
    lengths: Any,
    *,
    queries: Any = ...,
    causal: bool = ...,
    scale: Optional[float] = ...,
    window: Optional[Tuple[int, int]] = ...,
    pages: Any = ...,
    scales: Optional[Sequence[Any]] = ...,
    out: Optional[A] = ...,
    stream: StreamLike = ...,
    strict: bool = ...,
) -> A: ...
def decode(
    query: A,
    key_cache: A,
    value_cache: A,
    lengths: Any,
    *,
    tokens: int = ...,
    scale: Optional[float] = ...,
    pages: Any = ...,
    scales: Optional[Sequence[Any]] = ...,
    out: Optional[A] = ...,
    stream: StreamLike = ...,
    strict: bool = ...,
) -> A: ...
def attention(
    query: A,
    key: A,
    value: A,
    *,
    strict: bool = ...,
    causal: bool = ...,
    scale: Optional[float] = ...,
    window: Optional[Sequence[int]] = ...,
    blocks: Optional[BlockMask] = ...,
    softcap: Optional[float] = ...,
    alibi: Any = ...,
    bias: Any = ...,
    lengths: Any = ...,
    offsets: Any = ...,
    longest: Union[int, Sequence[int], None] = ...,
    out: Optional[A] = ...,
    stream: StreamLike = ...,
) -> A: ...
def scaled_dot_product_attention(
    query: A,
    key: A,
    value: A,
    attn_mask: None = ...,
    dropout_p: float = ...,
    is_causal: bool = ...,
    scale: Optional[float] = ...,
    enable_gqa: bool = ...,
    *,
    strict: bool = ...,
    stream: StreamLike = ...,
) -> A: ...
def rotary(
    x: A,
    positions: Any,
    *,
    strict: bool = ...,
    base: float = ...,
    size: Optional[int] = ...,
    frequencies: Optional[Sequence[float]] = ...,
    axes: Optional[Sequence[int]] = ...,
    interleaved: bool = ...,
    out: Optional[A] = ...,
    stream: StreamLike = ...,
) -> A: ...
def swiglu(
    input: A, up: Optional[A] = ..., *, strict: bool = ..., out: Optional[A] = ..., stream: StreamLike = ...
) -> A: ...
def geglu(
    input: A, up: Optional[A] = ..., *, strict: bool = ..., approximate: str = ..., out: Optional[A] = ..., stream: StreamLike = ...
) -> A: ...
def silu(input: A, *, strict: bool = ..., out: Optional[A] = ..., stream: StreamLike = ...) -> A: ...
def gelu(
    input: A, approximate: str = ..., *, strict: bool = ..., out: Optional[A] = ..., stream: StreamLike = ...
) -> A: ...
def sum(
    input: A, dim: Union[int, Sequence[int], None] = ..., keepdim: bool = ..., *, strict: bool = ..., stream: StreamLike = ...
) -> A: ...
def mean(
    input: A, dim: Union[int, Sequence[int], None] = ..., keepdim: bool = ..., *, strict: bool = ..., stream: StreamLike = ...
) -> A: ...
def norm(
    input: A,
    p: float = ...,
    dim: Union[int, Sequence[int], None] = ...,
    keepdim: bool = ...,
    *,
    strict: bool = ...,
    stream: StreamLike = ...,
) -> A: ...
def max(input: A, dim: Optional[int] = ..., keepdim: bool = ..., *, strict: bool = ..., stream: StreamLike = ...) -> A: ...
def min(input: A, dim: Optional[int] = ..., keepdim: bool = ..., *, strict: bool = ..., stream: StreamLike = ...) -> A: ...
def argmax(input: A, dim: Optional[int] = ..., keepdim: bool = ..., *, strict: bool = ..., stream: StreamLike = ...) -> A: ...
def argmin(input: A, dim: Optional[int] = ..., keepdim: bool = ..., *, strict: bool = ..., stream: StreamLike = ...) -> A: ...
def cumsum(
    input: A,
    dim: int = ...,
    *,
    strict: bool = ...,
    exclusive: bool = ...,
    out: Optional[A] = ...,
    stream: StreamLike = ...,
) -> A: ...
def transpose(input: A, *, strict: bool = ..., out: Optional[A] = ..., stream: StreamLike = ...) -> A: ...
def embedding(
    input: Any, weight: A, *, strict: bool = ..., out: Optional[A] = ..., stream: StreamLike = ...
) -> A: ...
def histc(
    input: A, bins: int = ..., min: float = ..., max: float = ..., *, strict: bool = ..., stream: StreamLike = ...
) -> A: ...
def sample(
    logits: A,
    *,
    strict: bool = ...,
    seed: int,
    offset: int = ...,
    temperature: float = ...,
    top_k: int = ...,
    top_p: float = ...,
    stream: StreamLike = ...,
) -> A: ...

# Modules of PyTorch. PyTorch's types are not named here, because the package works without it.
class RMSNorm:
    """`torch.nn.RMSNorm` over the last axis."""

    def __init__(
        self,
        size: int,
        eps: Optional[float] = ...,
        elementwise_affine: bool = ...,
        *,
        strict: bool = ...,
        interpret: bool = ...,
        **options: Any,
    ) -> None: ...
    def __call__(self, input: A) -> A: ...
    def forward(self, input: A) -> A: ...
    def __getattr__(self, name: str) -> Any: ...

class LayerNorm:
    """`torch.nn.LayerNorm` over the last axis."""

    def __init__(
        self,
        size: int,
        eps: float = ...,
        elementwise_affine: bool = ...,
        bias: bool = ...,
        *,
        strict: bool = ...,
        interpret: bool = ...,
        **options: Any,
    ) -> None: ...
    def __call__(self, input: A) -> A: ...
    def forward(self, input: A) -> A: ...
    def __getattr__(self, name: str) -> Any: ...

class OptimizedMLP:
    """down(f(gate(x)) * up(x)); without a gate, down(f(up(x)))."""

    def __init__(
        self,
        hidden_size: int,
        intermediate_size: int,
        activation: str = ...,
        *,
        gated: bool = ...,
        bias: bool = ...,
        strict: bool = ...,
        interpret: bool = ...,
    ) -> None: ...
    def __call__(self, x: A) -> A: ...
    def forward(self, x: A) -> A: ...
    def __getattr__(self, name: str) -> Any: ...

class OptimizedAttention:
    """Self-attention of (batch, tokens, hidden size), with fewer heads of keys than of queries."""

    def __init__(
        self,
        hidden_size: int,
        heads: int,
        key_heads: Optional[int] = ...,
        head_size: Optional[int] = ...,
        *,
        causal: bool = ...,
        window: Optional[Sequence[int]] = ...,
        rope_base: Optional[float] = ...,
        norm_eps: Optional[float] = ...,
        bias: bool = ...,
        strict: bool = ...,
        interpret: bool = ...,
    ) -> None: ...
    def __call__(self, x: A, positions: Any = ...) -> A: ...
    def forward(self, x: A, positions: Any = ...) -> A: ...
    def __getattr__(self, name: str) -> Any: ...

class TransformerBlock:
    """A decoder layer: x + attention(norm(x)), then x + mlp(norm(x))."""

    def __init__(
        self,
        hidden_size: int,
        heads: int,
        intermediate_size: int,
        key_heads: Optional[int] = ...,
        *,
        activation: str = ...,
        eps: float = ...,
        strict: bool = ...,
        interpret: bool = ...,
        **attention: Any,
    ) -> None: ...
    def __call__(self, x: A, positions: Any = ...) -> A: ...
    def forward(self, x: A, positions: Any = ...) -> A: ...
    def __getattr__(self, name: str) -> Any: ...

class AdamW:
    """The optimizer of `torch.optim.AdamW`, with one pass over the weights and states of a tensor."""

    def __init__(
        self,
        params: Any,
        lr: float = ...,
        betas: Tuple[float, float] = ...,
        eps: float = ...,
        weight_decay: float = ...,
        *,
        strict: bool = ...,
        interpret: bool = ...,
    ) -> None: ...
    def add_param_group(self, param_group: Dict[str, Any]) -> None: ...
    def load_state_dict(self, state_dict: Dict[str, Any]) -> None: ...
    def step(self, closure: Any = ...) -> Any: ...
    def __getattr__(self, name: str) -> Any: ...

class Patched:
    """The result of `patch`: `modules` has the replaced modules, `left` the reasons for the others."""

    modules: Dict[str, str]
    left: Dict[str, str]
    def undo(self) -> None: ...

def patch(model: Any, *, linear: bool = ..., strict: bool = ..., interpret: bool = ...) -> Patched: ...
def torch_allocator() -> Any: ...
def fake_quantize(
    input: A,
    scale: Any,
    zero_point: int = ...,
    quant_min: int = ...,
    quant_max: int = ...,
    *,
    strict: bool = ...,
    interpret: bool = ...,
) -> A: ...
