// Package retryhttp is the client: an http.RoundTripper that goes under any SDK or
// http.Client, retries by the policy engine and leaves one record of every attempt.
//
// [Transport.RoundTrip] reads the operation from the context (package op), sends the request by
// the policy (package retry), and hands the answer over as it comes: bodies pass through
// unbuffered, usage is read in passing (package usage), the record is made when the
// answer ends. The transport's own silent resends are off for requests with a body and
// counted otherwise; retries of an SDK above are seen by their headers and recorded as
// cause sdk.
//
// Not here: policy, classification, sending records (package emit), prices.
package retryhttp
