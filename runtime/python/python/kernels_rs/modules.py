"""Modules of PyTorch over the library, and `patch`, which gives a model of Hugging Face its kernels.

On the CPU these modules compute in PyTorch, because the CPU device of this package checks every
access and is slow. `interpret=True` runs the kernels there, for tests. `strict=True` raises
`Unsupported` where PyTorch would compute. Projections are `torch.nn.Linear`, so that PyTorch's
tensor cores, quantized layers and adapters keep working.
"""

import functools
import types

import torch
from torch import nn

from . import _torch

__all__ = ["AdamW", "LayerNorm", "OptimizedAttention", "OptimizedMLP", "Patched", "RMSNorm", "TransformerBlock", "patch"]

# The gate of each activation, by its name in Hugging Face's configurations, and its arguments.
GATES = {
    "silu": (_torch.swiglu, {}),
    "swish": (_torch.swiglu, {}),
    "gelu": (_torch.geglu, {}),
    "gelu_pytorch_tanh": (_torch.geglu, {"approximate": "tanh"}),
}
ACTIVATIONS = {
    "silu": (_torch.silu, {}),
    "swish": (_torch.silu, {}),
    "gelu": (_torch.gelu, {}),
    "gelu_pytorch_tanh": (_torch.gelu, {"approximate": "tanh"}),
}


def _named(table, activation):
    if activation not in table:
        raise ValueError(f"activation = {activation!r}: expected one of {', '.join(table)}")
    return table[activation]


class RMSNorm(nn.RMSNorm):
    """`torch.nn.RMSNorm` over the last axis."""

    def __init__(self, size, eps=None, elementwise_affine=True, *, strict=False, interpret=False, **options):
        super().__init__(size, eps, elementwise_affine, **options)
        self.calls = {"strict": strict, "interpret": interpret}

    def forward(self, input):
        """Returns the norm of the last axis."""
        return _torch.rms_norm(input, self.normalized_shape, self.weight, self.eps, **self.calls)


class LayerNorm(nn.LayerNorm):
    """`torch.nn.LayerNorm` over the last axis."""

    def __init__(self, size, eps=1e-5, elementwise_affine=True, bias=True, *, strict=False, interpret=False, **options):
        super().__init__(size, eps, elementwise_affine, bias, **options)
        self.calls = {"strict": strict, "interpret": interpret}

    def forward(self, input):
        """Returns the norm of the last axis."""
        return _torch.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps, **self.calls)


class OptimizedMLP(nn.Module):
    """down(f(gate(x)) * up(x)); without a gate, down(f(up(x))). The gate is one kernel."""

    def __init__(
        self, hidden_size, intermediate_size, activation="silu", *, gated=True, bias=False, strict=False, interpret=False
    ):
        super().__init__()
        self.gate_proj = nn.Linear(hidden_size, intermediate_size, bias=bias) if gated else None
        self.up_proj = nn.Linear(hidden_size, intermediate_size, bias=bias)
        self.down_proj = nn.Linear(intermediate_size, hidden_size, bias=bias)
        self.activation, self.options = _named(GATES if gated else ACTIVATIONS, activation)
        self.calls = {"strict": strict, "interpret": interpret}

    def forward(self, x):
        """Returns a tensor of the shape of x, (…, hidden size)."""
        operands = (self.up_proj(x),) if self.gate_proj is None else (self.gate_proj(x), self.up_proj(x))
        return self.down_proj(self.activation(*operands, **self.options, **self.calls))


class OptimizedAttention(nn.Module):
    """Self-attention of (batch, tokens, hidden size), with fewer heads of keys than of queries.

    `rope_base` rotates queries and keys by their positions; None leaves them. `norm_eps` applies an
    RMS norm to each head of queries and keys, as Qwen3 does. `window` is the number of keys before
    and after a query's position.
    """

    def __init__(
        self,
        hidden_size,
        heads,
        key_heads=None,
        head_size=None,
        *,
        causal=True,
        window=None,
        rope_base=10000.0,
        norm_eps=None,
        bias=False,
        strict=False,
        interpret=False,
    ):
        super().__init__()
        self.key_heads, self.head_size = key_heads or heads, head_size or hidden_size // heads
        if heads % self.key_heads:
            raise ValueError(f"heads = {heads} is no multiple of key_heads = {key_heads}")
        self.causal, self.window, self.rope_base = causal, window, rope_base
        of_keys = self.key_heads * self.head_size
        self.q_proj = nn.Linear(hidden_size, heads * self.head_size, bias=bias)
        self.k_proj = nn.Linear(hidden_size, of_keys, bias=bias)
        self.v_proj = nn.Linear(hidden_size, of_keys, bias=bias)
        self.o_proj = nn.Linear(heads * self.head_size, hidden_size, bias=bias)
        self.calls = {"strict": strict, "interpret": interpret}
        norms = (None, None) if norm_eps is None else (RMSNorm(self.head_size, norm_eps, **self.calls) for _ in "qk")
        self.q_norm, self.k_norm = norms

    def forward(self, x, positions=None):
        """Returns a tensor of the shape of x. `positions` are (tokens) or (batch, tokens); None counts from 0."""
        batch, tokens, _ = x.shape
        if positions is None:
            positions = torch.arange(tokens, device=x.device)
        positions = positions.expand(batch, tokens).reshape(-1)

        def heads(projection, norm):
            y = projection(x).reshape(batch * tokens, projection.out_features // self.head_size, self.head_size)
            y = y if norm is None else norm(y)
            if self.rope_base is not None:
                y = _torch.rotary(y, positions, base=self.rope_base, **self.calls)
            return y.reshape(batch, tokens, y.shape[1], self.head_size).transpose(1, 2)

        values = self.v_proj(x).reshape(batch, tokens, self.key_heads, self.head_size).transpose(1, 2)
        queries, keys = heads(self.q_proj, self.q_norm), heads(self.k_proj, self.k_norm)
        y = _torch.attention(queries, keys, values, causal=self.causal, window=self.window, **self.calls)
        return self.o_proj(y.transpose(1, 2).reshape(batch, tokens, y.shape[1] * self.head_size))


class TransformerBlock(nn.Module):
    """A decoder layer: x + attention(norm(x)), then x + mlp(norm(x)).

    `attention` passes further arguments to OptimizedAttention.
    """

    def __init__(
        self,
        hidden_size,
        heads,
        intermediate_size,
        key_heads=None,
        *,
        activation="silu",
        eps=1e-6,
        strict=False,
        interpret=False,
        **attention,
    ):
        super().__init__()
        calls = {"strict": strict, "interpret": interpret}
        self.input_layernorm = RMSNorm(hidden_size, eps, **calls)
        self.self_attn = OptimizedAttention(hidden_size, heads, key_heads, **attention, **calls)
        self.post_attention_layernorm = RMSNorm(hidden_size, eps, **calls)
        self.mlp = OptimizedMLP(hidden_size, intermediate_size, activation, **calls)

    def forward(self, x, positions=None):
        """Returns a tensor of the shape of x, (batch, tokens, hidden size)."""
        x = x + self.self_attn(self.input_layernorm(x), positions)
        return x + self.mlp(self.post_attention_layernorm(x))


class AdamW(torch.optim.Optimizer):
    """The optimizer of `torch.optim.AdamW`, with one pass over the weights and states of a tensor.

    The states are float32 also for weights of 16 bits, and the weights are rounded once a step.
    """

    def __init__(
        self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, *, strict=False, interpret=False
    ):
        for name, value, valid in [
            ("lr", lr, lr >= 0),
            ("betas", betas, all(0 <= beta < 1 for beta in betas)),
            ("eps", eps, eps >= 0),
            ("weight_decay", weight_decay, weight_decay >= 0),
        ]:
            if not valid:
                raise ValueError(f"{name} = {value!r}: it must not be negative, and betas must be below 1")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})
        self.calls = {"strict": strict, "interpret": interpret}

    def add_param_group(self, param_group):
        """Adds parameters, which are real."""
        super().add_param_group(param_group)
        for p in self.param_groups[-1]["params"]:
            if p.is_complex():
                raise TypeError(f"AdamW takes real parameters, and one is {str(p.dtype)[6:]}: use torch.view_as_real")

    def load_state_dict(self, state_dict):
        """Loads the states in their own type, or in float32 if that is wider.

        PyTorch would round them to the weights' type. The states of `torch.optim.AdamW` fit too.
        """
        super().load_state_dict(state_dict)
        numbers = [number for group in state_dict["param_groups"] for number in group["params"]]
        weights = [p for group in self.param_groups for p in group["params"]]
        for number, p in zip(numbers, weights):
            for name, value in state_dict["state"].get(number, {}).items():
                if name == "step":
                    self.state[p][name] = int(value)
                elif isinstance(value, torch.Tensor):
                    wide = torch.promote_types(value.dtype, torch.float32)
                    self.state[p][name] = value.to(p.device, wide, copy=True)

    @torch.no_grad()
    def step(self, closure=None):
        """Updates all parameters that have a gradient. Returns what the closure returns."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            settings = float(group["lr"]), group["betas"], group["eps"], group["weight_decay"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    wide = torch.promote_types(p.dtype, torch.float32)
                    state["step"] = 0
                    state["exp_avg"], state["exp_avg_sq"] = (torch.zeros_like(p, dtype=wide) for _ in range(2))
                state["step"] += 1
                _torch.adamw(p, p.grad, state["exp_avg"], state["exp_avg_sq"], state["step"], *settings, **self.calls)
        return loss


# Models of Hugging Face. Patching replaces only a module's method `forward`. The module keeps its
# class, its parameters and their names, so files of weights and adapters still fit.


def _rms_forward(self, hidden_states):
    eps = self.variance_epsilon
    return _torch.rms_norm(hidden_states, hidden_states.shape[-1], self.weight, eps, **self.kernels_rs_calls)


def _layer_norm_forward(self, input):
    return _torch.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps, **self.kernels_rs_calls)


def _linear_forward(self, input):
    return _torch.linear(input, self.weight, self.bias, **self.kernels_rs_calls)


def _gated_forward(self, x):
    gate, options = GATES[self.kernels_rs_activation]
    return self.down_proj(gate(self.gate_proj(x), self.up_proj(x), **options, **self.kernels_rs_calls))


def _vision_mlp_forward(self, hidden_state):
    f, options = ACTIVATIONS[self.kernels_rs_activation]
    return self.linear_fc2(f(self.linear_fc1(hidden_state), **options, **self.kernels_rs_calls))


def _attention_forward(module, query, key, value, attention_mask, dropout=0.0, scaling=None, is_causal=None, **_):
    """Computes attention for a module of Hugging Face, as its function `sdpa_attention_forward` does."""
    causal = module.is_causal if is_causal is None else is_causal
    queries = query.shape[2]
    causal = bool(causal) and queries > 1 and attention_mask is None
    if causal and key.shape[2] > queries:
        # In the prefill of a static cache, the cache's later rows are not written yet.
        key, value = key[:, :, :queries], value[:, :, :queries]
    y = _torch.scaled_dot_product_attention(
        query, key, value, attention_mask, dropout, causal, scaling, enable_gqa=True, **module.kernels_rs_calls
    )
    return y.transpose(1, 2).contiguous(), None


def _text_rotary(theirs, calls, q, k, cos, sin, unsqueeze_dim=1):
    """Rotates queries and keys (batch, heads, tokens, size) as Hugging Face's function `theirs` does."""
    if unsqueeze_dim != 1:
        return theirs(q, k, cos, sin, unsqueeze_dim)
    return tuple(_torch.rotary_tables(x, cos, sin, **calls) for x in (q, k))


def _vision_rotary(theirs, calls, q, k, cos, sin):
    """Rotates queries and keys (tokens, heads, size) as Hugging Face's function `theirs` does."""
    cos, sin = cos[None], sin[None]
    turned = (_torch.rotary_tables(x.transpose(0, 1)[None], cos, sin, **calls) for x in (q, k))
    return tuple(x[0].transpose(0, 1) for x in turned)


# For each function that a layer's attention may call, the equivalent that runs a kernel.
ROTARY = {"apply_rotary_pos_emb": _text_rotary, "apply_rotary_pos_emb_vision": _vision_rotary}


def _with_rotary(forward, calls):
    """Returns the forward of an attention module with kernels for its rotary embedding.

    Other modules of the class keep their forward. A decorated forward keeps its decorators. Returns
    None if the forward calls no known function.
    """
    code = getattr(forward, "__code__", None)
    if code is None:
        return None
    known = [name for name in code.co_names if name in ROTARY and name in forward.__globals__]
    scope, closure = forward.__globals__, forward.__closure__
    if known:
        # torch.compile would look names up in the module `__name__` instead of in this scope.
        scope = {name: value for name, value in scope.items() if name != "__name__"}
        for name in known:
            scope[name] = functools.partial(ROTARY[name], scope[name], calls)
    else:
        decorated = getattr(forward, "__wrapped__", None)
        inner = None if decorated is None else _with_rotary(decorated, calls)
        if inner is None:
            return None
        closure = tuple(types.CellType(inner) if cell.cell_contents is decorated else cell for cell in closure)
    rebuilt = types.FunctionType(code, scope, forward.__name__, forward.__defaults__, closure)
    rebuilt.__kwdefaults__ = forward.__kwdefaults__
    return rebuilt


def _mask(**arguments):
    """Makes the mask of a call as Hugging Face does; a causal call without padding has none.

    For `sdpa`, such a call lacks a mask only outside of torch.compile.
    """
    from transformers.masking_utils import sdpa_mask

    plain = arguments.get("attention_mask") is None and arguments.get("local_size") is None
    if plain and arguments.get("allow_is_causal_skip") and arguments.get("q_length") == arguments.get("kv_length", -1):
        return None
    return sdpa_mask(**arguments)


def _registered_attention():
    """Adds the attention and its masks to Hugging Face's tables. Returns its name there."""
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    name = "kernels_rs"
    ALL_ATTENTION_FUNCTIONS.register(name, _attention_forward)
    ALL_MASK_ATTENTION_FUNCTIONS.register(name, _mask)
    return name


def _activation_of(module):
    """Returns the name of an MLP's activation, from its configuration or its module."""
    config = getattr(module, "config", None)
    name = getattr(config, "hidden_act", None)
    if name is not None:
        return name
    by_class = {"SiLUActivation": "silu", "SiLU": "silu", "GELUActivation": "gelu", "GELU": "gelu"}
    by_class["GELUTanh"] = by_class["PytorchGELUTanh"] = "gelu_pytorch_tanh"
    found = type(module.act_fn).__name__
    if found == "GELU" and getattr(module.act_fn, "approximate", "none") == "tanh":
        return "gelu_pytorch_tanh"
    return by_class.get(found, found)


def _replacement(module, linear):
    """Returns a module's replacement: its forward, the name of the kernels, its activation.

    The forward is None for attention and for a module that cannot be replaced. For the latter, the
    name is the reason. Returns None for a module of another kind.
    """
    name = type(module).__name__
    if linear and type(module) is nn.Linear:
        return _linear_forward, "linear", None
    if name.endswith("RMSNorm") and hasattr(module, "variance_epsilon") and hasattr(module, "weight"):
        return _rms_forward, "rms_norm", None
    if type(module) is nn.LayerNorm:
        if len(module.normalized_shape) == 1:
            return _layer_norm_forward, "layer_norm", None
        return None, "it norms several axes", None
    if name.endswith("MLP") and hasattr(module, "act_fn"):
        activation = _activation_of(module)
        for forward, parts, table in [
            (_gated_forward, ("gate_proj", "up_proj", "down_proj"), GATES),
            (_vision_mlp_forward, ("linear_fc1", "linear_fc2"), ACTIVATIONS),
        ]:
            if all(hasattr(module, part) for part in parts):
                if activation in table:
                    return forward, table[activation][0].__name__, activation
                return None, f"there is no kernel of its activation {activation}", None
    if name.endswith("Attention") and hasattr(module, "num_key_value_groups") and hasattr(module, "config"):
        if hasattr(module.config, "_attn_implementation"):
            return None, "attention", None
    return None


class Patched:
    """The result of `patch`, by name: `modules` has the kernels, `left` the reasons for no kernel."""

    def __init__(self):
        self.modules, self.left = {}, {}
        self._changed, self._configs = [], []

    def undo(self):
        """Gives all modules their own methods again."""
        for module in self._changed:
            for name in ("forward", "kernels_rs_calls", "kernels_rs_activation"):
                module.__dict__.pop(name, None)
        for config, before in self._configs:
            config._attn_implementation = before
        self._changed, self._configs = [], []

    def __str__(self):
        counts = {}
        for kernel in self.modules.values():
            counts[kernel] = counts.get(kernel, 0) + 1
        lines = [f"{len(self.modules)} modules: " + ", ".join(f"{n} × {kernel}" for kernel, n in counts.items())]
        lines += [f"{name}: {kernel}" for name, kernel in self.modules.items()]
        lines += [f"{name}: as before, because {reason}" for name, reason in self.left.items()]
        return "\n".join(lines)

    __repr__ = __str__


def patch(model, *, linear=False, strict=False, interpret=False):
    """Makes attention, rotary embedding, norms and MLPs of a model of Hugging Face use the kernels, in place.

    Tested with Qwen3-VL; in other models, modules of the same structure are patched. Returns
    a Patched, which lists the modules, and whose `undo()` restores the model. `linear` also replaces
    the products of `nn.Linear` by those of this package. PyTorch's own products use tensor cores.
    Raises ValueError if there is nothing to replace.
    """
    patched = Patched()
    calls = {"strict": strict, "interpret": interpret}
    for name, module in model.named_modules():
        found = _replacement(module, linear)
        if found is None:
            continue
        forward, kernel, activation = found
        if forward is None and kernel != "attention":
            patched.left[name] = kernel
            continue
        module.kernels_rs_calls = calls
        if forward is None:
            config = module.config
            if all(config is not known for known, _ in patched._configs):
                patched._configs.append((config, config._attn_implementation))
                config._attn_implementation = _registered_attention()
            forward = _with_rotary(type(module).forward, calls)
            if forward is not None:
                module.forward = types.MethodType(forward, module)
                kernel = "attention, rotary"
        else:
            if activation is not None:
                module.kernels_rs_activation = activation
            module.forward = types.MethodType(forward, module)
        patched._changed.append(module)
        patched.modules[name] = kernel
    if not patched.modules:
        raise ValueError(f"{type(model).__name__} has no attention, norm or MLP that kernels_rs can replace")
    return patched
