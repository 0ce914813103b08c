"""Checks of options that the functions for arrays and for tensors share."""


def _form_of_gelu(name, approximate):
    """Returns the name of the exact form or of the approximation by tanh."""
    forms = {"none": name, "tanh": f"{name}_tanh"}
    if approximate not in forms:
        raise ValueError(f"approximate = {approximate!r}: expected 'none' or 'tanh'")
    return forms[approximate]


def _queries(causal):
    """Returns the number of queries of a sequence, which a truth value is not."""
    if isinstance(causal, bool):
        raise TypeError("causal is the number of queries of a sequence, and 0 without a mask; it is no truth value")
    return causal
