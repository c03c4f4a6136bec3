# R: batchtools and future.batchtools with the template for Slurm, and rslurm.
# Debian's packages: r-cran-batchtools r-cran-future.batchtools r-cran-rslurm
set -e
command -v Rscript > /dev/null && Rscript -e 'library(batchtools); library(future.batchtools); library(rslurm)' > /dev/null 2>&1 || { echo "no R here, or not its packages"; exit 77; }
cat > slurm.tmpl <<'S'
#!/bin/bash
#SBATCH --job-name=<%= job.name %>
#SBATCH --output=<%= log.file %>
#SBATCH --error=<%= log.file %>
#SBATCH --time=<%= ceiling(resources$walltime / 60) %>
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --mem-per-cpu=500
<%= if (!is.null(resources$partition)) sprintf(paste0("#SBATCH --partition='", resources$partition, "'")) %>
<%= if (array.jobs) sprintf("#SBATCH --array=1-%i", nrow(jobs)) else "" %>
export DEBUGME=<%= Sys.getenv("DEBUGME") %>
Rscript -e 'batchtools::doJobCollection("<%= uri %>")'
S
cat > check.R <<'S'
library(batchtools)
registry <- makeRegistry(file.dir = "registry", conf.file = NA)
registry$cluster.functions <- makeClusterFunctionsSlurm(template = "slurm.tmpl", scheduler.latency = 1, fs.latency = 10)
ids <- batchMap(function(x) x^2, x = 1:3)
submitJobs(ids, resources = list(walltime = 120, partition = "main"))
stopifnot(waitForJobs(timeout = 120, sleep = 1))
stopifnot(identical(unlist(reduceResultsList()), c(1, 4, 9)))
ids <- batchMap(function(x, y) Sys.sleep(60), x = 1, y = 1, reg = (other <- makeRegistry(file.dir = "registry2", conf.file = NA)))
other$cluster.functions <- registry$cluster.functions
submitJobs(ids, resources = list(walltime = 120, partition = "main"), reg = other)
for (i in 1:60) { if (nrow(findRunning(reg = other)) == 1) break; Sys.sleep(0.5) }
stopifnot(nrow(findOnSystem(reg = other)) == 1)
killJobs(ids, reg = other)
for (i in 1:60) { if (nrow(findOnSystem(reg = other)) == 0) break; Sys.sleep(0.5) }
stopifnot(nrow(findOnSystem(reg = other)) == 0)

library(future.batchtools)
plan(batchtools_slurm, template = "slurm.tmpl", resources = list(walltime = 120, partition = "main"))
f <- future(6 * 7)
stopifnot(value(f) == 42)

library(rslurm)
job <- slurm_apply(function(x) x + 1, data.frame(x = 1:4), jobname = "rs", nodes = 2, cpus_per_node = 1, submit = TRUE,
                   slurm_options = list(partition = "main", time = "2"))
out <- get_slurm_out(job, outtype = "table", wait = TRUE)
stopifnot(identical(sort(as.numeric(out[[1]])), c(2, 3, 4, 5)))
cleanup_files(job)
S
Rscript check.R
