// The work of ../../work.rs for goroutines: main WORK CPUS. Prints how long the second time took.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

var sink int

//go:noinline
func nop() { sink++ }

func yield(threads, yields int) {
	var all sync.WaitGroup
	all.Add(threads)
	for t := 0; t < threads; t++ {
		go func() {
			for i := 0; i < yields/threads; i++ {
				runtime.Gosched()
			}
			all.Done()
		}()
	}
	all.Wait()
}

func spawnJoin(times int) {
	var one sync.WaitGroup
	for i := 0; i < times; i++ {
		one.Add(1)
		go func() { nop(); one.Done() }()
		one.Wait()
	}
}

func spawnMany(atOnce, rounds int) {
	var all sync.WaitGroup
	for r := 0; r < rounds; r++ {
		all.Add(atOnce)
		for t := 0; t < atOnce; t++ {
			go func() { nop(); all.Done() }()
		}
		all.Wait()
	}
}

// With channels instead of WaitGroups, this takes longer.
func node(height int, sum *int, done *sync.WaitGroup) {
	if height == 0 {
		*sum = 1
	} else {
		var left, right int
		var children sync.WaitGroup
		children.Add(2)
		go node(height-1, &left, &children)
		go node(height-1, &right, &children)
		children.Wait()
		*sum = left + right
	}
	done.Done()
}

func sumtime(height, trees int) {
	for t := 0; t < trees; t++ {
		var sum int
		var done sync.WaitGroup
		done.Add(1)
		go node(height, &sum, &done)
		done.Wait()
		if sum != 1<<height {
			panic(sum)
		}
	}
}

// The counterpart of ../../echo.rs.
func cpuTime() int64 {
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return usage.Utime.Nano() + usage.Stime.Nano()
}

func echo(connections, requests int, work string) {
	begin := int64(requests / 5)
	if begin < int64(10*connections) {
		begin = int64(10 * connections)
	}
	end := begin + int64(requests)
	var count, first, last int64
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	client := exec.Command(os.Getenv("BENCH_CLIENT"), "client", listener.Addr().String(), work)
	said, _ := client.StdoutPipe()
	if err := client.Start(); err != nil {
		panic(err)
	}
	var all sync.WaitGroup
	for c := 0; c < connections; c++ {
		connection, err := listener.Accept()
		if err != nil {
			panic(err)
		}
		all.Add(1)
		go func() {
			defer all.Done()
			defer connection.Close()
			var message [64]byte
			for {
				if _, err := io.ReadFull(connection, message[:]); err != nil {
					return
				}
				if n := atomic.AddInt64(&count, 1); n == begin {
					first = cpuTime()
				} else if n == end {
					last = cpuTime()
				}
				if _, err := connection.Write(message[:]); err != nil {
					return
				}
			}
		}()
	}
	all.Wait()
	line, _ := io.ReadAll(said)
	client.Wait()
	text := strings.Replace(strings.TrimSpace(string(line)), "cpu_ns=0", fmt.Sprintf("cpu_ns=%d", last-first), 1)
	fmt.Println(text)
}

func main() {
	words := strings.Split(os.Args[1], ":")
	var sizes []int
	for _, word := range append(words[1:], os.Args[2]) {
		size, err := strconv.Atoi(word)
		if err != nil {
			panic(err)
		}
		sizes = append(sizes, size)
	}
	runtime.GOMAXPROCS(sizes[len(sizes)-1])
	if words[0] == "echo" {
		echo(sizes[0], sizes[1], os.Args[1])
		return
	}
	work := map[string]func(){
		"yield":      func() { yield(sizes[0], sizes[1]) },
		"spawn-join": func() { spawnJoin(sizes[0]) },
		"spawn-many": func() { spawnMany(sizes[0], sizes[1]) },
		"sumtime":    func() { sumtime(sizes[0], sizes[1]) },
	}[words[0]]
	work()
	runtime.GC()
	start := time.Now()
	work()
	fmt.Printf("elapsed_ns=%d\n", time.Since(start).Nanoseconds())
}
