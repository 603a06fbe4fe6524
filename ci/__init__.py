"""foldproof in a pipeline: the steps that `action.yml` and the GitLab template run (`python -m foldproof.ci STEP`)."""
