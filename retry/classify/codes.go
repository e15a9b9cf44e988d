package classify

import "github.com/retrylens/retrylens"

// Strength tells how far a code is to be believed.
type Strength uint8

const (
	// Vague codes name a family ("invalid_request_error"): words and a precise
	// status say more.
	Vague Strength = iota + 1
	// Firm codes name the class; words may still refine it (a rate limit that is
	// really an empty balance).
	Firm
	// Exact codes are the last word.
	Exact
)

// Rule is what one code, type or status of a provider means.
type Rule struct {
	Class    retrylens.ErrorClass
	Strength Strength
	Lock     bool // for conflicts: the provider says that another request holds it, so waiting helps
}

type codeList struct {
	class    retrylens.ErrorClass
	strength Strength
	codes    string // separated by spaces; case, '_', '-' and '.' do not matter
}

// codeLists are the codes of all providers that mean the same wherever they occur:
// error codes, types, gRPC statuses, exception names of SDKs and proxies.
var codeLists = []codeList{
	{retrylens.ClassQuotaExhausted, Exact, `insufficient_quota credit_balance_exhausted organization_spend_limit_exceeded
		project_spend_limit_exceeded organization_usage_limit_exceeded enforced_spend_limit_reached spend_limit_reached
		spend_limit_exceeded spending_limit_reached spending_limit_exceeded billing_error billing_hard_limit_reached billing_not_active
		billing_limit_reached billing_disabled billing_inactive BILLING_DISABLED account_deactivated_billing usage_limit_reached usage_limit_exceeded
		budget_exceeded BudgetExceededError budget_limit_exceeded insufficient_balance InsufficientBalance insufficient_credits
		insufficient_funds InsufficientFunds not_enough_credits insufficient_user_quota credits_exhausted out_of_credits
		credit_limit_exceeded no_credits payment_required PaymentRequired PaymentRequiredError payment_error quota_exceeded_daily
		ServiceQuotaExceededException ServiceQuotaExceeded exceeded_current_quota_error exceeded_current_quota daily_limit_exceeded
		daily_quota_exceeded monthly_limit_exceeded monthly_quota_exceeded free_quota_exhausted AllocationQuota.FreeTierOnly
		FreeTierOnly Arrearage account_overdue AccountOverdueError OverdueBalance SubscriptionExpired subscription_required
		openrouter_credits tokens_per_day requests_per_day token_quota_exceeded quota_exhausted QUOTA_EXHAUSTED
		OutOfCredits InsufficientQuota INSUFFICIENT_BALANCE balance_insufficient trial_expired plan_limit_reached
		AllocationQuota consumption_limit_exceeded hard_limit_reached`},
	{retrylens.ClassContentFilter, Exact, `content_filter content_filtered ContentFilterError content_policy_violation
		ContentPolicyViolationError ContentPolicyViolation ResponsibleAIPolicyViolation data_inspection_failed DataInspectionFailed
		moderation_blocked moderation_error moderation_failed content_moderation content_blocked contentFilter safety_error
		safety_violation policy_violation PROHIBITED_CONTENT prohibited_content bio_policy cyber_policy cyber_policy_violation
		image_content_policy_violation sensitive_content SensitiveContentDetected InputTextSensitiveContentDetected
		OutputTextSensitiveContentDetected InputImageSensitiveContentDetected input_moderation output_moderation
		guardrail_intervened GuardrailRaisedException guardrail_violation jailbreak_detected prompt_blocked
		response_blocked usage_policy_violation content_policy image_safety recitation safety`},
	{retrylens.ClassContextLength, Exact, `context_length_exceeded ContextWindowExceededError context_window_exceeded
		ContextLengthExceededError context_length_error context_too_long model_context_window_exceeded prompt_too_long
		input_too_long max_context_length_exceeded input_length_exceeded token_limit_exceeded tokens_limit_reached
		context_limit_exceeded max_tokens_exceeded exceed_context_size_error exceeds_context_length too_many_tokens
		prompt_tokens_exceeded maximum_context_length_exceeded string_too_long_for_context`},
	{retrylens.ClassAuth, Exact, `invalid_api_key incorrect_api_key invalid_authentication_error invalid_authentication
		API_KEY_INVALID API_KEY_EXPIRED api_key_expired API_KEY_SERVICE_BLOCKED_KEY missing_api_key no_api_key expired_api_key
		token_expired access_token_expired ACCESS_TOKEN_EXPIRED invalid_token expired_token ExpiredToken ExpiredTokenException
		UnrecognizedClientException InvalidSignatureException MissingAuthenticationTokenException MissingAuthenticationToken
		InvalidClientTokenId IncompleteSignature SignatureDoesNotMatch InvalidAccessKeyId ACCESS_TOKEN_TYPE_UNSUPPORTED
		CREDENTIALS_MISSING InvalidApiKey invalid_credentials account_deactivated key_revoked token_revoked
		incorrect_api_key_error InvalidSubscriptionKey api_key_revoked api_key_disabled bad_api_key oauth_token_expired
		InvalidAuthenticationToken AuthenticationTokenExpired ExpiredAuthenticationToken key_not_found_error no_auth`},
	{retrylens.ClassAuth, Firm, `authentication_error AuthenticationError auth_error UNAUTHENTICATED unauthorized
		UnauthorizedError UnauthorizedException unauthenticated_error authentication_failed AuthenticationFailed not_authenticated`},
	{retrylens.ClassNotFound, Exact, `model_not_found ModelNotFoundError model_not_available model_not_exist model_does_not_exist
		DeploymentNotFound deployment_not_found ModelNotFound invalid_model unknown_model model_decommissioned model_deprecated
		no_such_model ResourceNotFoundException OperationNotSupportedModel InvalidEndpointOrModel.NotFound ModelNotOpen
		thread_not_found file_not_found response_not_found previous_response_not_found model_not_supported
		model_retired invalid_model_error unsupported_model model_unavailable_permanently unknown_url`},
	{retrylens.ClassNotFound, Firm, `not_found not_found_error NotFoundError NotFoundException NOT_FOUND ResourceNotFound
		resource_not_found entity_not_found EntityNotFound no_endpoint no_endpoints_found`},
	{retrylens.ClassPermission, Exact, `unsupported_country_region_territory country_not_supported region_not_supported
		SERVICE_DISABLED API_KEY_SERVICE_BLOCKED API_KEY_HTTP_REFERRER_BLOCKED API_KEY_IP_ADDRESS_BLOCKED
		IAM_PERMISSION_DENIED ip_not_authorized ip_not_allowed data_residency_mismatch must_be_verified
		organization_must_be_verified model_access_denied request_forbidden VPC_SERVICE_CONTROLS`},
	{retrylens.ClassPermission, Firm, `permission_error permission_denied PermissionDenied PermissionDeniedError AccessDenied
		AccessDeniedException access_denied access_denied_error forbidden ForbiddenError PERMISSION_DENIED permission_denied_error
		insufficient_permissions not_authorized NotAuthorized AuthorizationError forbidden_error access_terminated_error
		user_location_not_supported organization_restricted UnauthorizedOperation insufficient_scope missing_scope
		key_model_access_denied team_model_access_denied user_model_access_denied`},
	{retrylens.ClassPayloadTooLarge, Exact, `request_too_large payload_too_large RequestTooLargeError RequestEntityTooLarge
		entity_too_large RequestBodyTooLarge body_too_large content_too_large request_entity_too_large PayloadTooLargeError
		request_size_exceeded`},
	{retrylens.ClassOverloaded, Exact, `overloaded_error overloaded engine_overloaded engine_overloaded_error OverloadedError
		server_overloaded model_overloaded MODEL_CAPACITY_EXHAUSTED capacity_exceeded service_overloaded
		service_tier_capacity_exceeded server_is_overloaded no_capacity insufficient_capacity over_capacity ServerOverloaded
		slow_down SlowDown SlowDownException model_busy server_busy ServerBusy system_busy capacity_error overload
		ModelOverloadedError EngineOverloaded ServiceOverloaded no_instances_available too_busy
		InsufficientCapacityException engine_busy rate_limit_error_slow_down resource_capacity_exhausted`},
	{retrylens.ClassRateLimited, Firm, `rate_limit_exceeded rate_limit_error RateLimitError rate_limit rate_limited RateLimited
		rate_limit_reached RateLimitReached rate_limit_reached_error too_many_requests TooManyRequests TooManyRequestsError
		TooManyRequestsException TooManyRequests429 throttling ThrottlingException Throttled ThrottledException throttling_error Throttling.RateQuota
		Throttling.BurstRate RequestLimitExceeded RequestThrottled RequestThrottledException RESOURCE_EXHAUSTED ResourceExhausted
		rate_quota limit_requests limit_burst_rate requests_limit_exceeded concurrency_limit_exceeded concurrency_limit
		tokens_per_minute requests_per_minute RATE_LIMIT_EXCEEDED LimitExceeded LimitExceededException
		ProvisionedThroughputExceededException BandwidthLimitExceeded TransactionInProgressException quota_exceeded
		QuotaExceeded QuotaExceededError max_concurrency_exceeded request_limit_reached ratelimitexceedederror`},
	{retrylens.ClassUnavailable, Firm, `service_unavailable ServiceUnavailable ServiceUnavailableError ServiceUnavailableException
		UNAVAILABLE temporarily_unavailable engine_unavailable backend_unavailable model_loading ModelNotReadyException
		model_not_ready NoHealthyUpstream no_available_server`},
	{retrylens.ClassBadGateway, Firm, `bad_gateway BadGatewayError upstream_error provider_unavailable provider_error
		upstream_unavailable upstream_connection_error bad_response_status_code`},
	{retrylens.ClassGatewayTimeout, Firm, `gateway_timeout GatewayTimeout upstream_timeout DEADLINE_EXCEEDED
		GatewayTimeoutError provider_timeout`},
	{retrylens.ClassTimeout, Firm, `timeout timeout_error Timeout TimeoutError APITimeoutError request_timeout RequestTimeout
		RequestTimeoutException ModelTimeoutException operation_timeout request_timed_out RequestTimeoutError timed_out
		vector_store_timeout`},
	{retrylens.ClassConflict, Firm, `conflict ConflictException ConflictError conflict_error ALREADY_EXISTS AlreadyExists
		OperationAborted ResourceInUseException resource_conflict active_run`},
	{retrylens.ClassCancelled, Firm, `cancelled canceled request_cancelled request_canceled client_closed_request
		ClientClosedRequest`},
	{retrylens.ClassServerError, Vague, `server_error api_error internal_error internal_server_error InternalServerError
		InternalServerException InternalFailure INTERNAL InternalError api_connection_error APIConnectionError ModelErrorException
		ModelStreamErrorException InternalServiceError unknown_error_internal internal_failure DATA_LOSS engine_error
		EngineDeadError EngineGenerateError inference_error generation_error model_error InternalError.Algo
		APIError server_exception internal_exception InternalServiceException`},
	{retrylens.ClassInvalidRequest, Exact, `string_above_max_length unsupported_parameter unsupported_value
		unknown_parameter missing_required_parameter invalid_json json_validate_failed tool_use_failed invalid_image
		invalid_image_url image_parse_error invalid_base64_image image_too_large failed_to_download_image invalid_function_parameters
		integer_above_max_value integer_below_min_value decimal_above_max_value array_above_max_length
		dedicated_endpoint_not_running extra_forbidden image_too_small unsupported_image_media_type empty_image_file
		invalid_tool_call_id wrong_api_format`},
	{retrylens.ClassInvalidRequest, Vague, `invalid_request_error invalid_request invalid_prompt InvalidRequestError BadRequestError bad_request
		BadRequest BadRequestException ValidationException ValidationError validation_error validation INVALID_ARGUMENT
		InvalidArgument FAILED_PRECONDITION FailedPrecondition OUT_OF_RANGE UNIMPLEMENTED UnprocessableEntityError unprocessable_entity
		invalid_parameter InvalidParameter InvalidParameterValue invalid_parameter_error client_error invalid_argument
		invalid_value UnsupportedParamsError unsupported_operation APIInvalidRequestError SerializationException
		MalformedRequest parameter_error missing_parameter invalid_params InvalidParameterError method_not_allowed
		unsupported_media_type RequestValidationError JSONDecodeError BadRequestKeyError invalid_input
		InvalidInput UnsupportedOperation input_validation_error`},
}

// lockCodes are conflicts where waiting helps.
var lockCodes = []string{"ABORTED", "lock_timeout", "request_in_progress", "idempotency_in_progress", "locked",
	"resource_locked", "concurrent_request", "in_progress", "idempotency_key_in_use", "ConcurrentModificationException",
	"concurrent_modification", "OptimisticLockException", "transaction_conflict", "idempotency_error_in_flight",
	"conversation_locked", "thread_locked"}

var codes = buildCodes()

func buildCodes() *wordMap[Rule] {
	m := make(map[string]Rule, 512)
	for _, l := range codeLists {
		for _, code := range splitSpace(l.codes) {
			m[key(code)] = Rule{Class: l.class, Strength: l.strength}
		}
	}
	for _, code := range lockCodes {
		m[key(code)] = Rule{Class: retrylens.ClassConflict, Strength: Exact, Lock: true}
	}
	return newWordMap(m)
}

// key is the spelling under which a code is kept.
func key(code string) string {
	var buf [maxCode]byte
	return string(squash(buf[:], []byte(code)))
}

const maxCode = 64

func splitSpace(s string) []string {
	var out []string
	start := -1
	for i := 0; i <= len(s); i++ {
		space := i == len(s) || s[i] == ' ' || s[i] == '\n' || s[i] == '\t'
		switch {
		case !space && start < 0:
			start = i
		case space && start >= 0:
			out = append(out, s[start:i])
			start = -1
		}
	}
	return out
}
