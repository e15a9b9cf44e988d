package classify

import "math/bits"

// role tells what a JSON member of an error means, by its name alone.
type role uint8

const (
	roleNone role = iota
	roleCode
	roleMessage
	roleError     // an error object, or its text
	roleStatus    // an HTTP or upstream status
	roleQuotaID   // names the quota
	roleQuotaZero // the size of the quota
	roleSource    // who limits: words
	roleWaitSec   // a wait: seconds if a number, a duration if a text
	roleWaitMS
	roleResetAt // Unix seconds or RFC 3339
	roleSkip    // echoes of the request, model output, links
	roleFinish
	roleBlock
	roleRefusal
	roleText    // generated text or a tool call
	roleChoices // the list of answers
	roleDone
	roleType // type in a success body
	roleObject
	roleStateful // status in a success body, code otherwise
	roleRetrySeconds
	roleBytes // Bedrock wraps chunks in base64
	roleTypeURL
	roleLoc
	roleUsage
)

// roles is keyed by the name in lower case without '_' and '-'.
var roles = newWordMap(map[string]role{
	"code": roleCode, "errorcode": roleCode, "errcode": roleCode, "errortype": roleCode, "exception": roleError,
	"reason": roleCode, "kind": roleCode, "name": roleCode, "subcode": roleCode, "errorname": roleCode,
	"reasoncode": roleCode, "errorreason": roleCode, "errorclass": roleCode, "providercode": roleCode,
	"providererrorcode": roleCode, "internalcode": roleCode, "errtype": roleCode, "exceptiontype": roleCode,
	"upstreamcode": roleCode, "bizcode": roleCode, "type": roleType, "object": roleObject, "status": roleStateful,

	"message": roleMessage, "msg": roleMessage, "detail": roleMessage, "details": roleMessage, "errormessage": roleMessage,
	"errormsg": roleMessage, "errmsg": roleMessage, "description": roleMessage, "errordescription": roleMessage,
	"title": roleMessage, "raw": roleMessage, "statusmsg": roleMessage, "statusmessage": roleMessage,
	"originalmessage": roleMessage, "providermessage": roleMessage, "body": roleMessage, "rawbody": roleMessage,
	"responsebody": roleMessage, "upstreamerror": roleError, "providererror": roleError, "originalerror": roleError,
	"rawerror": roleError, "internalmessage": roleMessage, "errordetail": roleMessage, "errordetails": roleMessage,
	"cause": roleError, "causedby": roleError, "response": roleMessage, "text": roleText, "info": roleMessage,
	"failurereason": roleMessage, "displaymessage": roleMessage, "userfacingmessage": roleMessage, "explanation": roleMessage,

	"error": roleError, "errors": roleError, "err": roleError, "innererror": roleError, "fault": roleError,
	"baseresp": roleError, "xgroqerror": roleError, "lasterror": roleError, "detailederror": roleError,

	"statuscode": roleStatus, "httpstatus": roleStatus, "httpcode": roleStatus, "httpstatuscode": roleStatus,
	"originalstatuscode": roleStatus, "upstreamstatus": roleStatus, "upstreamstatuscode": roleStatus,
	"rawstatuscode": roleStatus, "responsecode": roleStatus, "providerstatus": roleStatus, "providerstatuscode": roleStatus,

	"quotaid": roleQuotaID, "quotalimit": roleQuotaID, "quotametric": roleQuotaID, "limittype": roleQuotaID, "limitname": roleQuotaID, "quotaunit": roleQuotaID,
	"quotavalue": roleQuotaZero, "quotalimitvalue": roleQuotaZero, "limit": roleQuotaZero, "limitsource": roleSource,

	"retrydelay": roleWaitSec, "retryafter": roleWaitSec, "retryafterseconds": roleWaitSec, "retryaftersec": roleWaitSec,
	"retryaftersecs": roleWaitSec, "retryin": roleWaitSec, "retryinseconds": roleWaitSec, "resetsinseconds": roleWaitSec,
	"resetinseconds": roleWaitSec, "resetsin": roleWaitSec, "resetin": roleWaitSec, "estimatedtime": roleWaitSec,
	"waitseconds": roleWaitSec, "waittime": roleWaitSec, "cooldownseconds": roleWaitSec, "resetafter": roleWaitSec,
	"resetafterseconds": roleWaitSec, "retrydelayseconds": roleWaitSec, "suggestedwait": roleWaitSec, "waitfor": roleWaitSec,
	"retryafterms": roleWaitMS, "retrydelayms": roleWaitMS, "resetinms": roleWaitMS, "resetsinms": roleWaitMS,
	"retryaftermillis": roleWaitMS, "waitms": roleWaitMS, "retryaftermilliseconds": roleWaitMS, "backoffms": roleWaitMS,
	"resetsat": roleResetAt, "resetat": roleResetAt, "resettime": roleResetAt, "retryat": roleResetAt, "resetdate": roleResetAt, "reset": roleResetAt,

	"input": roleSkip, "failedgeneration": roleSkip, "contentfilterresult": roleSkip, "contentfilterresults": roleSkip,
	"promptfilterresults": roleSkip, "headers": roleSkip, "usage": roleUsage, "links": roleSkip, "ctx": roleSkip,
	"param": roleSkip, "params": roleSkip, "requestbody": roleSkip, "requestdata": roleSkip, "url": roleSkip, "remedyhint": roleSkip,
	"help": roleSkip, "stack": roleSkip, "traceback": roleSkip, "stacktrace": roleSkip, "logprobs": roleSkip,
	"safetyratings": roleSkip, "request": roleSkip, "requestid": roleSkip, "usagemetadata": roleUsage, "safetysettings": roleSkip,
	"@type": roleTypeURL, "loc": roleLoc, "retryinfo": roleNone, "field": roleSkip, "timestamp": roleSkip, "path": roleSkip,
	"documentationurl": roleSkip, "hint": roleSkip, "citations": roleSkip, "annotations": roleSkip,

	"finishreason": roleFinish, "stopreason": roleFinish, "donereason": roleFinish, "blockreason": roleBlock,
	"refusal": roleRefusal, "content": roleText, "outputtext": roleText, "arguments": roleText, "partialjson": roleText,
	"toolcalls": roleText, "functioncall": roleText,
	"generation": roleText, "completion": roleText, "delta": roleNone, "choices": roleChoices, "candidates": roleChoices,
	"output": roleChoices, "done": roleDone, "bytes": roleBytes, "seconds": roleRetrySeconds, "inlinedata": roleText,
	"tooluse": roleText, "generatedtext": roleText, "executablecode": roleText, "parts": roleNone, "outputs": roleChoices,
	"audio": roleText, "completionreason": roleFinish,
})

// wordMap finds a word in a fixed vocabulary without allocating: open addressing,
// filled to at most a half. Most words of a text are in no vocabulary; these cost
// one look at the hashes, which fit the first cache.
type wordMap[V any] struct {
	mask   uint32
	hashes []uint32 // 0 is free
	at     []uint16 // place in words and values
	words  []string
	values []V
}

const hashSeed = 0x9e3779b9

// hashByte costs two cycles a byte; hashEnd spreads the result.
func hashByte(h uint32, c byte) uint32 { return bits.RotateLeft32(h, 5) ^ uint32(c) }

func hashEnd(h uint32) uint32 {
	h *= 0x85ebca6b
	return h ^ h>>15 | 1<<31 // never 0
}

func newWordMap[V any](m map[string]V) *wordMap[V] {
	size := 64
	for size < 2*len(m) {
		size *= 2
	}
	w := &wordMap[V]{mask: uint32(size - 1), hashes: make([]uint32, size), at: make([]uint16, size)}
	for k, v := range m {
		h := uint32(hashSeed)
		for i := range len(k) {
			h = hashByte(h, k[i])
		}
		h = hashEnd(h)
		i := h & w.mask
		for w.hashes[i] != 0 {
			i = (i + 1) & w.mask
		}
		w.hashes[i], w.at[i] = h, uint16(len(w.words))
		w.words, w.values = append(w.words, k), append(w.values, v)
	}
	return w
}

// get finds a word that is in lower case.
func (w *wordMap[V]) get(b []byte) (v V, ok bool) {
	h := uint32(hashSeed)
	for _, c := range b {
		h = hashByte(h, c)
	}
	h = hashEnd(h)
	for i := h & w.mask; w.hashes[i] != 0; i = (i + 1) & w.mask {
		if n := w.at[i]; w.hashes[i] == h && w.words[n] == string(b) {
			return w.values[n], true
		}
	}
	return v, false
}

// find finds a word in any case.
func (w *wordMap[V]) find(b []byte) *V {
	h := uint32(hashSeed)
	for _, c := range b {
		h = hashByte(h, lower[c])
	}
	return w.folded(b, hashEnd(h))
}

// folded finds a word in any case whose hash in lower case is known.
func (w *wordMap[V]) folded(b []byte, h uint32) *V {
	for i := h & w.mask; w.hashes[i] != 0; i = (i + 1) & w.mask {
		if n := w.at[i]; w.hashes[i] == h && equalFolded(b, w.words[n]) {
			return &w.values[n]
		}
	}
	return nil
}

// squashed finds a word in any case and however its parts are joined.
func (w *wordMap[V]) squashed(b []byte) *V {
	h := uint32(hashSeed)
	for _, c := range b {
		if c = joined[c]; c != 0 {
			h = hashByte(h, c)
		}
	}
	h = hashEnd(h)
	for i := h & w.mask; w.hashes[i] != 0; i = (i + 1) & w.mask {
		if n := w.at[i]; w.hashes[i] == h && equalSquashed(b, w.words[n]) {
			return &w.values[n]
		}
	}
	return nil
}

func equalSquashed(b []byte, word string) bool {
	n := 0
	for _, c := range b {
		if c = joined[c]; c == 0 {
			continue
		}
		if n == len(word) || c != word[n] {
			return false
		}
		n++
	}
	return n == len(word)
}

// joined is the lower case of the bytes that squash keeps, 0 for all others.
var joined = func() (t [256]byte) {
	for c := range len(t) {
		switch b := byte(c); {
		case b >= 'a' && b <= 'z', b >= '0' && b <= '9', b == '@', b >= 0x80:
			t[c] = b
		case b >= 'A' && b <= 'Z':
			t[c] = b | 0x20
		}
	}
	return t
}()

func equalFolded(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i, c := range b {
		if lower[c] != word[i] {
			return false
		}
	}
	return true
}

// squash writes s in lower case without anything but letters, digits and '@' into
// buf and returns it; a text that does not fit is cut.
func squash(buf, s []byte) []byte {
	n := 0
	for _, c := range s {
		if c = joined[c]; c == 0 {
			continue
		}
		if n == len(buf) {
			break
		}
		buf[n] = c
		n++
	}
	return buf[:n]
}
