/* The machine's own limits, in the units the benchmark speaks: processes started and waited for, and synced appends.
 *
 *   limits true LOOPS SECONDS          fork + exec of /bin/true, LOOPS processes at it
 *   limits shell LOOPS SECONDS         the same with `sh -c 'echo >>FILE'`: what a no-op batch job must cost at least
 *   limits sync SECONDS FILE           4 KiB appended and fdatasync'ed, one after the other
 *
 * Prints one line: how many a second, and for `sync` also the median in microseconds. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static long spawn_until(char **arguments, double end) {
    long done = 0;
    while (now() < end) {
        pid_t child;
        int status;
        if (posix_spawn(&child, arguments[0], NULL, NULL, arguments, environ) != 0) return -1;
        if (waitpid(child, &status, 0) != child || status != 0) return -1;
        done++;
    }
    return done;
}

static int spawn(char **arguments, int loops, double seconds) {
    int answers[2];
    if (pipe(answers) != 0) return 1;
    double start = now();
    for (int i = 0; i < loops; i++) {
        pid_t worker = fork();
        if (worker < 0) return 1;
        if (worker == 0) {
            long done = spawn_until(arguments, start + seconds);
            _exit(write(answers[1], &done, sizeof done) != sizeof done);
        }
    }
    long total = 0;
    for (int i = 0; i < loops; i++) {
        long done;
        if (read(answers[0], &done, sizeof done) != sizeof done || done < 0) return 1;
        total += done;
    }
    while (wait(NULL) > 0) {}
    printf("%.1f\n", total / (now() - start));
    return 0;
}

static int in_order(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int sync_appends(double seconds, const char *path) {
    enum { MOST = 200000 };
    static double took[MOST];
    char block[4096];
    memset(block, 'x', sizeof block);
    int file = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_APPEND, 0600);
    if (file < 0) return 1;
    double start = now();
    long done = 0;
    while (now() < start + seconds && done < MOST) {
        double begun = now();
        if (write(file, block, sizeof block) != sizeof block || fdatasync(file) != 0) return 1;
        took[done++] = now() - begun;
    }
    double rate = done / (now() - start);
    close(file);
    unlink(path);
    if (done == 0) return 1;
    qsort(took, done, sizeof took[0], in_order);
    printf("%.1f %.1f\n", rate, took[done / 2] * 1e6);
    return 0;
}

int main(int count, char **words) {
    if (count == 4 && strcmp(words[1], "true") == 0) {
        char *arguments[] = {"/bin/true", NULL};
        return spawn(arguments, atoi(words[2]), atof(words[3]));
    }
    if (count == 4 && strcmp(words[1], "shell") == 0) {
        char *arguments[] = {"/bin/sh", "-c", "echo >>/dev/null", NULL};
        return spawn(arguments, atoi(words[2]), atof(words[3]));
    }
    if (count == 4 && strcmp(words[1], "sync") == 0) return sync_appends(atof(words[2]), words[3]);
    fprintf(stderr, "usage: limits true|shell LOOPS SECONDS | limits sync SECONDS FILE\n");
    return 2;
}
