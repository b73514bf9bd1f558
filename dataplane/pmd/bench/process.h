/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that are measured: started with their output in a file, awaited, ended. */
#ifndef PMD_BENCH_PROCESS_H
#define PMD_BENCH_PROCESS_H

#include <sys/types.h>

#define MAX_WORDS 64

struct process {
	pid_t pid;
	char log[128];
};

/* A command line as words: those of each text, which are separated by blanks. */
struct command {
	const char *words[MAX_WORDS + 1];
	unsigned n;
	char text[4096];
	unsigned used;
};

/* Append words: the format gives text, of which blanks separate the words. */
void command_add(struct command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Append one word, whatever it has in it. */
void command_word(struct command *command, const char *word);

/* Start it with stdout and stderr in a log file. It dies with this process. Exits where that fails. */
struct process process_start(const struct command *command, const char *log);

/* Wait until the log has a text. 0, or -1: it ended, or `seconds` have gone by. */
int process_says(struct process *process, const char *text, double seconds);

/* Interrupt it, and kill it if that does not end it. Returns its status as waitpid says it. */
int process_end(struct process *process);

/* Wait for its end; kill it after so long. */
int process_wait(struct process *process, double seconds);

/* All of its log; free it. */
char *process_log(const struct process *process);

#endif
