// The Vercel AI SDK; the argument names the provider.

import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import { about, lookUp, maxTokens, model, prompt, say, schema, secret } from "./question.mjs";

const options = { name: "tokenway", baseURL: `${process.env.URL}/v1`, apiKey: "unused" };
const providers = {
  anthropic: createAnthropic,
  openai: createOpenAI,
  "openai-compatible": createOpenAICompatible,
};
const asked = { model: providers[process.argv[2]](options)(model), prompt, maxRetries: 0 };

async function ask() {
  say((await generateText({ ...asked, maxOutputTokens: maxTokens, temperature: 0 })).text);
  say(await streamText({ ...asked, maxOutputTokens: maxTokens, temperature: 0 }).text);
}

async function call() {
  const look_up = tool({ description: about, inputSchema: jsonSchema(schema), execute: lookUp });
  const options = { ...asked, tools: { look_up }, stopWhen: stepCountIs(4) };
  say((await generateText(options)).text);
  say(await streamText(options).text);
}

await (secret ? call() : ask());
