// The OpenAI SDK: Chat Completions and Responses.

import OpenAI from "openai";
import { about, lookUp, maxTokens, messages, model, prompt, say, schema, secret } from "./question.mjs";

const client = new OpenAI();

async function ask() {
  const asked = { model, messages, max_tokens: maxTokens, temperature: 0 };
  say((await client.chat.completions.create(asked)).choices[0].message.content);
  say(await client.chat.completions.stream(asked).finalContent());
  const wanted = { model, input: prompt, max_output_tokens: maxTokens, temperature: 0 };
  say((await client.responses.create(wanted)).output_text);
  say((await client.responses.stream(wanted).finalResponse()).output_text);
}

async function call() {
  const tool = { name: "look_up", description: about, parameters: schema, parse: JSON.parse, function: lookUp };
  const runner = client.chat.completions.runTools({ model, messages, tools: [{ type: "function", function: tool }], stream: true });
  say(await runner.finalContent());
}

await (secret ? call() : ask());
