// A model that follows a plan: Claude's fake, which checks every request, with
// replies from a generator instead of a list. The generator yields the calls of
// one reply, {name, args}, and gets their results, {text, error}; its return value
// is the final answer. Tokens are counted as a quarter of the bytes.
import { claude } from './claude.mjs';

const TOKEN = 4;

function resultsOf({ content }) {
  return content.filter((b) => b.type === 'tool_result').map((b) => ({
    text: typeof b.content === 'string' ? b.content : (b.content ?? []).map((c) => c.text ?? '').join(''),
    error: b.is_error === true,
  }));
}

export async function planner(options) {
  const model = await claude(options);
  model.follow = (plan) => Object.assign(model, { plan, used: { input: 0, output: 0, trips: 0 } });
  model.next = function next() {
    const { body, bytes } = this.requests.at(-1);
    const { value, done } = this.plan.next(resultsOf(body.messages.at(-1)));
    for (const call of done ? [] : value)
      if (!body.tools.some((t) => t.name === call.name)) throw new Error(`the model has no tool ${call.name}`);
    const row = done ? { text: value } : { calls: value };
    this.used.trips++;
    this.used.input += Math.ceil(bytes.length / TOKEN);
    this.used.output += Math.ceil(JSON.stringify(row).length / TOKEN);
    return row;
  };
  return model;
}
