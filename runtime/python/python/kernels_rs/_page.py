"""Pages of `kernels inspect` for notebooks."""

import html


class Page:
    """The page of an instance: its Rust, IR, PTX and machine code side by side, with costs."""

    def __init__(self, document):
        self.html = document

    def save(self, path):
        """Writes the document to a file, which needs no network."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html)

    def _repr_html_(self):
        document = html.escape(self.html, quote=True)
        return f'<iframe srcdoc="{document}" style="width: 100%; height: 720px; border: 0"></iframe>'

    def __repr__(self):
        return f"<Page of {len(self.html)} characters: save(path) writes it, a notebook shows it>"


def inspect(kernel):
    """Returns the page of `kernels inspect` for the kernel's instance; a notebook shows it."""
    return Page(kernel.page())
