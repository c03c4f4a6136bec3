"""clusterfutures: concurrent.futures on Slurm."""
# packages: clusterfutures
import cfut

with cfut.SlurmExecutor(debug=False, additional_setup_lines=["#SBATCH --mem=200"]) as executor:
    assert [future.result(timeout=120) for future in [executor.submit(pow, 2, n) for n in range(3)]] == [1, 2, 4]
    assert list(executor.map(abs, [-1, -2])) == [1, 2]
