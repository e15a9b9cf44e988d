package classify_test

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry/classify"
	"golang.org/x/net/http2"
)

var discard = log.New(io.Discard, "", 0)

// h2Server speaks HTTP/2 by frames: answer is called with the id of every stream
// once its request is complete; it returns false to close the connection.
func h2Server(t *testing.T, answer func(fr *http2.Framer, id uint32) bool) (*http.Client, string) {
	t.Helper()
	certs := httptest.NewUnstartedServer(nil) // for its certificate
	certs.Config.ErrorLog = discard
	certs.EnableHTTP2 = true
	certs.StartTLS()
	t.Cleanup(certs.Close)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: certs.TLS.Certificates, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serveH2(conn, answer)
		}
	}()
	client := certs.Client()
	client.Transport.(*http.Transport).ForceAttemptHTTP2 = true
	t.Cleanup(client.CloseIdleConnections)
	return client, "https://" + l.Addr().String() + "/v1/messages"
}

func serveH2(conn net.Conn, answer func(*http2.Framer, uint32) bool) {
	defer conn.Close()
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	fr := http2.NewFramer(conn, conn)
	fr.WriteSettings()
	for {
		frame, err := fr.ReadFrame()
		if err != nil {
			return
		}
		switch f := frame.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				fr.WriteSettingsAck()
			}
		case *http2.DataFrame:
			if f.StreamEnded() && !answer(fr, f.StreamID) {
				return
			}
		}
	}
}

// ok200 is the header block ":status 200, content-type text/event-stream".
func ok200() []byte {
	block := []byte{0x88, 0x00, byte(len("content-type"))}
	block = append(block, "content-type"...)
	block = append(block, byte(len("text/event-stream")))
	return append(block, "text/event-stream"...)
}

func TestHTTP2(t *testing.T) {
	head := func(fr *http2.Framer, id uint32) {
		fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: ok200(), EndHeaders: true})
	}
	tests := []struct {
		name   string
		answer func(fr *http2.Framer, id uint32) bool
		want   want
	}{
		{"REFUSED_STREAM", func(fr *http2.Framer, id uint32) bool {
			fr.WriteRSTStream(id, http2.ErrCodeRefusedStream)
			return true
		}, presend},
		{"INTERNAL_ERROR", func(fr *http2.Framer, id uint32) bool {
			fr.WriteRSTStream(id, http2.ErrCodeInternal)
			return true
		}, unknown},
		{"PROTOCOL_ERROR, which the transport would resend", func(fr *http2.Framer, id uint32) bool {
			fr.WriteRSTStream(id, http2.ErrCodeProtocol)
			return true
		}, unknown},
		{"GOAWAY below our stream", func(fr *http2.Framer, id uint32) bool {
			fr.WriteGoAway(0, http2.ErrCodeNo, nil)
			return true
		}, presend},
		{"GOAWAY below our stream with an error", func(fr *http2.Framer, id uint32) bool {
			fr.WriteGoAway(0, http2.ErrCodeEnhanceYourCalm, []byte("too_many_pings"))
			return true
		}, presend},
		{"GOAWAY at our stream, then closed", func(fr *http2.Framer, id uint32) bool {
			fr.WriteGoAway(id, http2.ErrCodeNo, nil)
			return false
		}, unknown},
		{"GOAWAY above our stream, then closed", func(fr *http2.Framer, id uint32) bool {
			fr.WriteGoAway(id+20, http2.ErrCodeNo, nil)
			return false
		}, unknown},
		{"closed without a word", func(fr *http2.Framer, id uint32) bool { return false }, unknown},
		{"reset after headers", func(fr *http2.Framer, id uint32) bool {
			head(fr, id)
			fr.WriteRSTStream(id, http2.ErrCodeInternal)
			return true
		}, unknown},
		{"reset after content", func(fr *http2.Framer, id uint32) bool {
			head(fr, id)
			fr.WriteData(id, false, []byte("data: {\"choices\":[{}]}\n\n"))
			fr.WriteRSTStream(id, http2.ErrCodeInternal)
			return true
		}, broken},
		{"GOAWAY and close after content", func(fr *http2.Framer, id uint32) bool {
			head(fr, id)
			fr.WriteData(id, false, []byte("data: {\"choices\":[{}]}\n\n"))
			fr.WriteGoAway(id, http2.ErrCodeEnhanceYourCalm, nil)
			return false
		}, broken},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			client, target := h2Server(t, tt.answer)
			v, f := try(t, client, target, nil)
			check(t, v, f, tt.want, 1)
		})
	}
}

// TestHTTP2SecondStream: GOAWAY with a last stream below the second request of a
// connection.
func TestHTTP2SecondStream(t *testing.T) {
	client, target := h2Server(t, func(fr *http2.Framer, id uint32) bool {
		if id > 1 {
			fr.WriteGoAway(1, http2.ErrCodeNo, nil)
			return true
		}
		fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: ok200(), EndHeaders: true, EndStream: true})
		return true
	})
	if _, f := try(t, client, target, nil); f.Err != nil {
		t.Fatal(f.Err)
	}
	v, f := try(t, client, target, nil)
	check(t, v, f, presend, 1)
}

// TestHTTP2Types: golang.org/x/net exports what net/http does not.
func TestHTTP2Types(t *testing.T) {
	tests := []struct {
		err    error
		stream uint32
		want   retrylens.ErrorClass
	}{
		{http2.StreamError{StreamID: 5, Code: http2.ErrCodeRefusedStream}, 5, retrylens.ClassTransportPresend},
		{http2.StreamError{StreamID: 5, Code: http2.ErrCodeEnhanceYourCalm}, 5, retrylens.ClassTransportUnknown},
		{http2.GoAwayError{LastStreamID: 5}, 7, retrylens.ClassTransportPresend},
		{http2.GoAwayError{LastStreamID: 7}, 7, retrylens.ClassTransportUnknown},
		{http2.GoAwayError{LastStreamID: 5}, 0, retrylens.ClassTransportUnknown},
		{http2.GoAwayError{LastStreamID: 0}, 0, retrylens.ClassTransportPresend},
		{http2.ErrNoCachedConn, 0, retrylens.ClassTransportPresend},
	}
	for _, tt := range tests {
		v := classify.New().Classify(&classify.Failure{Err: tt.err, HTTP2StreamID: tt.stream})
		if v.Class != tt.want {
			t.Errorf("%v on stream %d: %s, want %s", tt.err, tt.stream, v.Class, tt.want)
		}
	}
}
