package main

import (
	"context"
	"reflect"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// columnData is a table in memory: per block one slice per column, as
// clickhouse-go appends it.
type columnData struct {
	names  string
	blocks [][]any
	rows   int
}

// readColumns reads the imported attempts back.
func readColumns(ctx context.Context, conn driver.Conn) (columnData, error) {
	rows, err := conn.Query(ctx, "SELECT * FROM retrylens_import.attempts")
	if err != nil {
		return columnData{}, err
	}
	defer rows.Close()
	types := rows.ColumnTypes()
	data := columnData{names: strings.Join(rows.Columns(), ", ")}
	var block []reflect.Value
	flush := func() {
		if block == nil {
			return
		}
		out := make([]any, len(block))
		for i, c := range block {
			out[i] = c.Interface()
		}
		data.blocks, block = append(data.blocks, out), nil
	}
	for rows.Next() {
		if block == nil {
			for _, t := range types {
				block = append(block, reflect.MakeSlice(reflect.SliceOf(t.ScanType()), 0, importBatch))
			}
		}
		dest := make([]any, len(types))
		for i, t := range types {
			dest[i] = reflect.New(t.ScanType()).Interface()
		}
		if err := rows.Scan(dest...); err != nil {
			return columnData{}, err
		}
		for i := range block {
			block[i] = reflect.Append(block[i], reflect.ValueOf(dest[i]).Elem())
		}
		if data.rows++; data.rows%importBatch == 0 {
			flush()
		}
	}
	flush()
	return data, rows.Err()
}
