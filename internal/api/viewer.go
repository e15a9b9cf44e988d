package api

import (
	"context"
	"errors"
	"slices"

	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/query"
)

type viewerKey struct{}

// WithTenants restricts the requests of a context to some tenants: others do not
// exist for them. A context without it sees every tenant.
func WithTenants(ctx context.Context, tenants ...string) context.Context {
	return context.WithValue(ctx, viewerKey{}, tenants)
}

// Tenants are those that the requests of a context are restricted to; false = it is
// not restricted.
func Tenants(ctx context.Context) ([]string, bool) {
	tenants, restricted := ctx.Value(viewerKey{}).([]string)
	return tenants, restricted
}

// Restrict is the tenants to look at of those asked for; none asked for are all that
// the viewer may see. None in the answer are all there are.
func Restrict(ctx context.Context, asked []string) ([]string, error) {
	may, restricted := Tenants(ctx)
	switch {
	case !restricted:
		return asked, nil
	case len(may) == 0:
		return nil, foreign("")
	case len(asked) == 0:
		return may, nil
	}
	for _, t := range asked {
		if !slices.Contains(may, t) {
			return nil, foreign(t)
		}
	}
	return asked, nil
}

func foreign(tenant string) error {
	return &query.ParamError{Param: string(metrics.DimTenant), Value: tenant, Err: errors.New("is not yours to see")}
}
