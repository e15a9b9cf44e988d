package api

import (
	"context"

	"github.com/retrylens/retrylens/internal/export"
	"github.com/retrylens/retrylens/internal/metrics"
)

// ReportParams are a question about groups of operations.
type ReportParams struct {
	WindowParams
	GroupParams
	FormatParams
	ConditionalParams
}

func (a *API) report(ctx context.Context, p *ReportParams) (*answer, error) {
	q, err := a.parse(ctx, &p.WindowParams)
	if err != nil {
		return nil, err
	}
	r, err := a.o.Source.Report(ctx, q)
	if err != nil {
		return nil, err
	}
	return reportAnswer(r, p.media(), "report", p.IfNoneMatch)
}

func reportAnswer(r *metrics.Report, media, name, match string) (*answer, error) {
	if media != typeJSON {
		return fileAnswer(media, name, export.Report(r)), nil
	}
	return jsonAnswer(r, match)
}
