// The Anthropic SDK.

import Anthropic from "@anthropic-ai/sdk";
import { about, lookUp, maxTokens, messages, model, say, schema, secret } from "./question.mjs";

const client = new Anthropic();

async function ask() {
  const asked = { model, messages, max_tokens: maxTokens, temperature: 0 };
  say((await client.messages.create(asked)).content[0].text);
  say(await client.messages.stream(asked).finalText());
}

async function call() {
  const asked = { model, max_tokens: 4096, tools: [{ name: "look_up", description: about, input_schema: schema }] };
  const first = await client.messages.stream({ ...asked, messages }).finalMessage();
  const called = first.content.find((block) => block.type === "tool_use");
  const result = { type: "tool_result", tool_use_id: called.id, content: lookUp(called.input) };
  const turns = [{ role: "assistant", content: first.content }, { role: "user", content: [result] }];
  const last = await client.messages.create({ ...asked, messages: [...messages, ...turns] });
  say(last.content[0].text);
}

await (secret ? call() : ask());
