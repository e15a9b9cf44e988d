package usage

// role of a container that the reader descends into.
type role uint8

const (
	rSkip    role = iota
	rRoot         // the document itself, or the list it is
	rInner        // what wraps it: response, message, delta, x_groq
	rAnswer       // holds generated content somewhere
	rUsage        // holds token figures
	rBilled       // holds Cohere's billed units
	rMeta         // holds usage objects under other names
	rError        // an error: all that matters is that it is there
	rDetails      // incomplete_details
)

// action is what to do with the value of a member.
type action uint8

const (
	aNone      action = iota
	aInner            // what wraps the answer
	aInnerText        // the same, or text if a string
	aAnswer           // an answer container, or text if a string
	aTool             // an answer that is no text
	aText             // text, or an answer container
	aTextOnly         // text if a string, else nothing: what tools are given
	aReasoning        // the model's thinking
	aRefusal
	aFinish
	aFinishLast // a finish that ends the stream: Gemini's
	aBlock
	aDetails
	aReason // why an answer is incomplete
	aType
	aThought
	aError

	// What speaks for the whole answer stands at its top or in what wraps it, never
	// further inside, where tools and users put words.
	aUsage
	aBilled
	aMeta
	aStatus
	aModel
	aDone
	aBytes // base64 of another document

	aFigure // aFigure + f: token figure f; the last action
)

// memberOf finds the action of a member by its name alone; where it holds is told by
// Reader.member.
func memberOf(key []byte) action {
	switch string(key) {
	case "usage", "usageMetadata", "usage_metadata", "amazon-bedrock-invocationMetrics":
		return aUsage
	case "message", "x_groq":
		return aInner
	case "response", "delta":
		return aInnerText
	case "meta":
		return aMeta
	case "choices", "candidates", "output", "outputs", "results", "generations", "parts", "content_block", "start", "item", "part", "function", "promptFeedback", "audio":
		return aAnswer
	case "tool_calls", "function_call", "functionCall", "toolUse", "inlineData", "executableCode", "custom":
		return aTool
	case "content":
		return aText
	case "text", "partial_json", "arguments", "transcript", "completion", "generation", "outputText", "input", "data":
		return aTextOnly
	case "reasoning_content", "reasoning", "thinking", "reasoningContent", "reasoningText":
		return aReasoning
	case "refusal":
		return aRefusal
	case "finish_reason", "stop_reason", "stopReason", "completionReason":
		return aFinish
	case "finishReason":
		return aFinishLast
	case "blockReason", "block_reason":
		return aBlock
	case "incomplete_details":
		return aDetails
	case "error":
		return aError
	case "type", "object":
		return aType
	case "status":
		return aStatus
	case "model", "modelVersion", "model_version":
		return aModel
	case "done":
		return aDone
	case "bytes":
		return aBytes
	case "thought":
		return aThought
	case "prompt_eval_count", "eval_count", "prompt_token_count", "generation_token_count", "inputTextTokenCount", "tokenCount":
		return aFigure + action(fieldOf(key))
	}
	return aNone
}

// usageMember is memberOf inside a usage object.
func usageMember(key []byte) action {
	switch string(key) {
	case "prompt_tokens_details", "completion_tokens_details", "input_tokens_details", "output_tokens_details", "tokens":
		return aUsage
	case "billed_units":
		return aBilled
	}
	if f := fieldOf(key); f != fNone {
		return aFigure + action(f)
	}
	return aNone
}

func billedMember(key []byte) action {
	switch string(key) {
	case "input_tokens":
		return aFigure + action(fBilledIn)
	case "output_tokens":
		return aFigure + action(fBilledOut)
	}
	return aNone
}

// member finds the action of a member of f.
func (d *document) member(f *frame, key []byte) action {
	switch f.role {
	case rUsage, rMeta:
		return usageMember(key)
	case rBilled:
		return billedMember(key)
	case rDetails:
		if string(key) == "reason" {
			return aReason
		}
		return aNone
	case rError:
		return aNone
	}
	a := memberOf(key)
	switch {
	case f.role == rRoot, f.role == rInner && a != aBytes:
		return a
	case a == aInner || a == aInnerText:
		return aText // a message or delta further inside
	case a >= aFigure, a == aError: // choices[].error, results[].tokenCount
		if d.depth > maxChoiceDepth {
			return aNone
		}
	case a >= aUsage && a <= aBytes:
		return aNone
	}
	return a
}

// maxChoiceDepth: root, choices, choice.
const maxChoiceDepth = 3

// elementAction is the action of an element of a list.
func elementAction(r role) action {
	switch r {
	case rRoot:
		return aInner
	case rAnswer:
		return aText
	case rError:
		return aError
	}
	return aNone
}

// container decides whether to descend into the value at hand.
func (d *document) container() role {
	switch d.act {
	case aUsage:
		return rUsage
	case aBilled:
		return rBilled
	case aMeta:
		return rMeta
	case aInner, aInnerText:
		if d.depth == 1 && d.stack[0].array {
			return rRoot // an element of the list that is the document stands for it
		}
		return rInner
	case aAnswer, aText, aReasoning, aTool:
		d.to.seen.generative = true
		return rAnswer
	case aDetails:
		return rDetails
	case aError:
		return rError
	}
	return rSkip
}
