// The work of ../../work.rs for goroutines: main WORK CPUS. Prints how long the second time took.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
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
