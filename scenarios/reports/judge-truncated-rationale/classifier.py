"""The judge of answers: a model that gives its reasons and its choice as the arguments of one tool call"""

import json


class LLMClassifier:
    def __init__(self, client, choice_scores, max_tokens=512):
        self.client, self.choice_scores, self.max_tokens = client, choice_scores, max_tokens

    def __call__(self, output, expected):
        prompt = f"Expected: {expected}\nSubmitted: {output}\nDoes the submission contain what is expected?"
        response = self.client.complete(
            messages=[{"role": "user", "content": prompt}],
            tools=[{"type": "function", "function": {"name": "select_choice"}}],
            max_tokens=self.max_tokens,
        )
        return self._process_response(response)

    def _process_response(self, response):
        tool_call = response["tool_calls"][0]
        args = json.loads(tool_call["function"]["arguments"])
        return {"score": self.choice_scores[args["choice"]], "rationale": args["reasons"]}
