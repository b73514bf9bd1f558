/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that are measured: started once with their output in a file, then asked, paused, resumed, ended. */
#ifndef PMD_BENCH_PROCESS_H
#define PMD_BENCH_PROCESS_H

#include <stddef.h>
#include <sys/types.h>

#define MAX_WORDS 64

struct process {
	pid_t pid; /* 0: there is none, or it has ended */
	int input; /* it reads what is written there */
	char log[128];
};

/* A command line as words: those of each text, which are separated by blanks. */
struct command {
	const char *words[MAX_WORDS + 1];
	unsigned n;
	int cpu; /* it runs there and nowhere else; -1: anywhere */
	char text[4096];
	unsigned used;
};

/* Append words: the format gives text, of which blanks separate the words. */
void command_add(struct command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Append one word, whatever it has in it. */
void command_word(struct command *command, const char *word);

/* Start it with stdout and stderr in a log file. It dies with this process. Exits where that fails. */
struct process process_start(const struct command *command, const char *log);

/* Wait until the log has a text behind its first `from` bytes. 0, or -1: it ended, or `seconds` have gone by. */
int process_says(struct process *process, size_t from, const char *text, double seconds);

/* The same, until all of a number is there behind the text. */
int process_find(struct process *process, size_t from, const char *text, double *value, double seconds);

/*
 * Write a line to it, and wait for the number that it prints behind a label. 0, or -1: it ended, or does not answer. The label may be NULL: then
 * nothing is waited for.
 */
int process_ask(struct process *process, const char *line, const char *label, double *value);

/* Bytes in its log so far. */
size_t process_logged(const struct process *process);

/* Its log without the first `from` bytes; free it. */
char *process_log(const struct process *process, size_t from);

/* It, and all that it has started, gets a signal: SIGSTOP and SIGCONT pause and resume it. */
void process_signal(const struct process *process, int signal);

/* What was started last, by what was started last by it, and so on; or itself. */
pid_t process_innermost(const struct process *process);

/* Kill it, and wait for its end. */
void process_end(struct process *process);

/* Wait for its end; kill it after so long. */
void process_wait(struct process *process, double seconds);

#endif
