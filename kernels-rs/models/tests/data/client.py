"""Tests a server by OpenAI's client: python3 client.py URL. Prints "passed" at the end."""
import sys
import openai

client = openai.OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0)
assert [model.id for model in client.models.list()] == ["small"]
assert client.models.retrieve("small").owned_by == "kernels-rs"

question = [{"role": "user", "content": "What is 2+2?"}]
known = "The answer to this classic"
answer = client.chat.completions.create(model="small", messages=question, temperature=0, max_tokens=5)
assert answer.choices[0].message.content == known, answer
assert answer.choices[0].finish_reason == "length", answer
assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens, answer

# The server's cache has the prompt of the first request, except its last token.
parts = client.chat.completions.create(
    model="small", messages=question, temperature=0, stream=True, stream_options={"include_usage": True}, stop=" classic"
)
parts = list(parts)
text = "".join(part.choices[0].delta.content or "" for part in parts if part.choices)
assert text == "The answer to this", text
assert parts[-2].choices[0].finish_reason == "stop", parts
assert parts[-1].usage.prompt_tokens_details.cached_tokens == answer.usage.prompt_tokens - 1, parts[-1]

text = client.completions.create(model="small", prompt="The capital of France is", temperature=0, max_tokens=1)
assert text.choices[0].text == " Paris" and text.choices[0].finish_reason == "length", text

for wrong, error in [({"model": "gpt-4"}, openai.NotFoundError), ({"n": 2}, openai.BadRequestError)]:
    try:
        client.chat.completions.create(**{"model": "small", "messages": question, **wrong})
    except error as refused:
        assert refused.body["param"] == next(iter(wrong)), refused.body
    else:
        raise AssertionError(wrong)
print("passed")
