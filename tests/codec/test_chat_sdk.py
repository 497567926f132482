"""Chat Completions as the official SDK sees it."""

from __future__ import annotations

from tests.codec_bed import MODEL, BedMaker


async def test_whole_answer_has_text_reason_and_usage(beds: BedMaker) -> None:
    engine = beds.engine(beds.says("Hello there, friend."))
    async with beds.bed(engine) as bed:
        answer = await bed.openai.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": "hi"}]
        )
    (choice,) = answer.choices
    assert (choice.message.content, choice.finish_reason) == ("Hello there, friend.", "stop")
    assert answer.object == "chat.completion"
    usage = answer.usage
    assert usage is not None
    assert usage.prompt_tokens == len(engine.generations[0].prompt_ids)
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
