// Package architecture keeps the shape of the house by tests: who may import
// whom, what stands at the top level, and that each package says what it is for.
// It imports nothing of the project: it reads it.
package architecture
