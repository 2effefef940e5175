// A peer of examples/http: Go's net/http, which answers every request as that answers GET /.
package main

import (
	"log"
	"net/http"
	"os"
	"runtime"
	"strconv"
)

func main() {
	if len(os.Args) > 2 {
		if procs, err := strconv.Atoi(os.Args[2]); err == nil {
			runtime.GOMAXPROCS(procs)
		}
	}
	body := []byte("Hello, world!")
	http.HandleFunc("/", func(writer http.ResponseWriter, _ *http.Request) { writer.Write(body) })
	log.Fatal(http.ListenAndServe(os.Args[1], nil))
}
