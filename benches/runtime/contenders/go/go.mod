module sigmund/benches/goroutines

go 1.19
