// What a script is to ask, and the one tool that it has.

export const model = process.env.MODEL;
export const prompt = process.env.PROMPT;
export const secret = process.env.SECRET;
export const messages = [{ role: "user", content: prompt }];
export const maxTokens = 200;
export const about = "Tells what is known about a key.";
export const schema = {
  type: "object",
  properties: { key: { type: "string" } },
  required: ["key"],
};

export const lookUp = ({ key }) => `${key}: ${secret}`;

export function say(text) {
  if (!text?.trim()) throw new Error("the answer has no text");
  console.log(text);
}
